"""D1, D2, D6, D7, D11, S17 and S18 of the device's contract over a real socket; times are `test_playout`'s."""

import asyncio
import struct
from collections.abc import Iterator

import pytest

from fleet.core import packet_queue
from fleet.ground.errors import ProviderError
from fleet.wire import packet
from tests.support.edge_stage import Device, Stage, on_stage, opus_like


async def begin(stage: Stage, **rest: object) -> Device:
    device = await stage.open(**rest)
    await stage.listen()
    device.be_silent(4)
    await stage.received(1)
    return device


def headers(device: Device) -> Iterator[packet.Header]:
    for datagram in device.received:
        header = packet.parse(datagram)
        assert header
        yield header


async def spoken(stage: Stage, count: int = 1) -> None:
    await stage.until(lambda: stage.kinds().count("speech_done") == count)


async def test_sequence_and_timestamp_rise_over_all_turns() -> None:
    async with on_stage() as stage:
        device = await begin(stage, aec=True)
        for number in (1, 2, 3):
            await stage.speak(f"t{number}", "A", "B")
            await spoken(stage, number)
        found = list(headers(device))
        assert [header.sequence for header in found] == list(range(1, len(found) + 1))
        assert [header.timestamp for header in found] == [60 * number for number in range(1, len(found) + 1)]
        assert len(device.audio()) == 18


async def test_no_two_packets_share_keystream() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        uplink = [device.seal(opus_like(number)) for number in range(1, 60)]
        for datagram in uplink:
            device.send_raw(datagram)
        await stage.received(59)
        await stage.speak("t1", *"ABCDEF")
        await spoken(stage)
        blocks: set[int] = set()
        for datagram in [*device.received]:
            first = int.from_bytes(datagram[:16], "big")
            own = set(range(first, first + -(-(len(datagram) - 16) // 16)))
            assert not own & blocks
            blocks |= own
        assert not {int.from_bytes(datagram[:16], "big") for datagram in uplink} & blocks
        assert all(datagram[1] == 0x80 for datagram in device.received)


async def test_every_datagram_has_a_size_that_devices_take() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.voice.gate = asyncio.Event()
        await stage.speak("t1", "A", ended=False)
        stage.voice.gate.set()
        await device.packets(3)
        await stage.until(lambda: len(device.received) >= 8)
        assert all(24 <= len(datagram) <= 1200 for datagram in device.received)
        assert all(struct.unpack_from(">I", datagram, 4)[0] == device.ssrc for datagram in device.received)


async def test_speech_waits_for_the_devices_first_packet() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.speak("t1", "A")
        assert stage.told() == []
        device.be_silent(4)
        await spoken(stage)
        assert stage.told() == ["start", "sentence_start", "stop"]
        assert len(device.audio()) == 3


async def test_speech_is_given_up_when_the_device_sends_nothing() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.speak("t1", "A")
        stage.pass_time(9)
        await stage.until(lambda: stage.edge._services.outbox._queue.empty())
        assert not stage.posted
        stage.pass_time(11)
        await spoken(stage)
        assert stage.told() == []


async def test_speech_is_announced_before_there_is_audio() -> None:
    async with on_stage() as stage:
        await begin(stage)
        await stage.send("speech_begun", turn="t1")
        assert stage.told() == ["start"]


async def test_answer_without_sentences_is_ended() -> None:
    async with on_stage() as stage:
        await begin(stage)
        await stage.speak("t1")
        await spoken(stage)
        assert stage.told() == ["start", "stop"]


async def test_sentence_that_comes_again_is_spoken_once() -> None:
    async with on_stage() as stage:
        await begin(stage)
        await stage.send("speech_begun", turn="t1")
        await stage.send("speech_begun", turn="t1")
        for index in (0, 0, 1, 0, 1):
            await stage.send("sentence_ready", turn="t1", index=index, text=f"N{index}")
        await stage.send("speech_ended", turn="t1", index=2)
        await spoken(stage)
        assert stage.voice.spoken == ["N0", "N1"]
        assert stage.told() == ["start", "sentence_start", "sentence_start", "stop"]


async def test_voice_that_fails_in_the_middle_ends_the_answer() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.voice.failure, stage.voice.fail_at = ProviderError("down", retryable=False), 2
        await stage.speak("t1", "A", "B", ended=False)
        await spoken(stage)
        assert stage.told() == ["start", "sentence_start", "stop"]
        assert len(device.audio()) == 2
        stage.voice.failure = None
        await stage.speak("t2", "C")
        await spoken(stage, 2)


async def test_voice_works_at_most_one_sentence_ahead_of_the_next() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.voice.packets_each = 8
        await stage.speak("t1", *"ABCDE")
        await device.packets(1)
        assert stage.voice.spoken == ["A", "B", "C"]
        await spoken(stage)
        assert stage.voice.spoken == ["A", "B", "C", "D", "E"]


@pytest.mark.parametrize("packets_each", [19, 20, 21, 60])
async def test_an_answer_with_more_audio_than_may_wait_is_spoken_to_its_end(
    monkeypatch: pytest.MonkeyPatch, packets_each: int
) -> None:
    monkeypatch.setattr(packet_queue, "MOST_PACKETS", 20)
    async with on_stage() as stage:
        device = await begin(stage)
        stage.voice.packets_each = packets_each
        await stage.speak("t1", "A", "B")
        await spoken(stage)
        wanted = [f"{text}:{number:06}".encode() for text in "AB" for number in range(packets_each)]
        assert [payload[1:] for payload in device.audio()] == wanted
        assert stage.told() == ["start", "sentence_start", "sentence_start", "stop"]


async def test_an_answer_goes_on_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage() as stage:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        device = await begin(stage)
        publish, failed = stage.publish, list[bytes]()

        def fail_once(topic: str, payload: bytes) -> bool:
            if b"sentence_start" in payload and not failed:
                failed.append(payload)
                raise RuntimeError
            return publish(topic, payload)

        monkeypatch.setattr(stage, "publish", fail_once)
        await stage.speak("t1", "A", "B")
        await spoken(stage)
        assert stage.told() == ["start", "sentence_start", "stop"]
        assert len(device.audio()) == 5, "all but the packet that led to the exception"


async def test_newer_answer_takes_over_without_stop_and_start() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.voice.packets_each = 100
        await stage.speak("t1", "A")
        await device.packets(2)
        stage.voice.packets_each = 2
        await stage.speak("t2", "B")
        await spoken(stage)
        assert stage.told() == ["start", "sentence_start", "sentence_start", "stop"]
        assert [event.turn for event in stage.posted] == ["t2"]
        assert device.audio()[-1][1:] == b"B:000001"
        found = [header.sequence for header in headers(device)]
        assert found == sorted(set(found))


async def test_silence_bridges_the_time_until_the_next_sentence() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        await stage.speak("t1", "A", ended=False)
        await device.packets(3)
        await stage.until(lambda: len(device.received) >= 6)
        await stage.send("sentence_ready", turn="t1", index=1, text="B")
        await stage.send("speech_ended", turn="t1", index=2)
        await spoken(stage)
        assert len(device.audio()) == 6
        assert stage.told() == ["start", "sentence_start", "sentence_start", "stop"]


async def test_address_is_never_answered_from_another_port() -> None:
    async with on_stage() as stage:
        sources: list[object] = []
        device = await begin(stage)
        take = device.datagram_received
        device.datagram_received = lambda data, addr: (sources.append(addr), take(data, addr))[1]  # type: ignore[method-assign]
        await stage.speak("t1", "A")
        await spoken(stage)
        assert set(sources) == {("127.0.0.1", stage.edge.port)}
