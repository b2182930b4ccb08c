"""U1 to U12 of the device's contract, as far as an edge alone shows them."""

import pytest

from fleet.adapters.speech.stream_state import LOST
from fleet.wire import packet
from tests.support.edge_stage import PROOF, QUIET, Stage, crypt, on_stage, opus_like
from tests.support.virtual_time import elapse


async def test_speech_over_udp_is_recognised_and_posted() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        stage.asr.script.append("turn on the lamp")
        device.say(frames=6)
        heard = await stage.heard()
        assert (heard.text, heard.language, heard.session) == ("turn on the lamp", "en", "s1")
        assert stage.orders[0] == {"type": "stt", "session_id": "s1", "text": "turn on the lamp"}
        assert stage.asr.markers()[:6] == [1, 2, 3, 4, 5, 6]


async def test_contract_vector_is_the_packet_that_the_device_sends() -> None:
    payload = b"\x58" + b"\xaa" * 19
    header = bytes.fromhex("01000014112233440000000000000001")
    assert (header + crypt(header, payload)).hex() == (
        "010000141122334400000000000000017932" + "87ab24ea30d90ae90a5df6da8d871b0d2878"
    )


async def test_downlink_follows_the_device_to_a_new_port() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.be_silent(PROOF)
        await stage.received(PROOF)
        await device.open()
        await stage.follows(device)
        await stage.speak("t1", "A")
        assert len(await device.packets(3)) == 3


async def test_forged_packet_does_not_move_the_address() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        forger = await stage.device()
        await stage.listen()
        device.be_silent(PROOF)
        await stage.received(PROOF)
        for sequence in (50, 51, 52):
            forger.send_raw(forger.seal(bytes(20), sequence)[: packet.HEADER] + bytes(20))
        await stage.received(PROOF + 3)
        assert stage.edge.counters["not_audio"] == 3
        await stage.speak("t1", "A")
        await device.packets(3)
        assert not forger.received


async def test_one_good_packet_from_elsewhere_does_not_move_the_address() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        other = await stage.device()
        await stage.listen()
        device.be_silent(PROOF)
        other.sequence = PROOF
        other.be_silent(1)
        device.sequence = PROOF + 1
        device.be_silent(1)
        other.sequence = PROOF + 2
        other.be_silent(1)
        await stage.received(PROOF + 3)
        await stage.speak("t1", "A")
        await device.packets(3)
        assert not other.received


async def test_the_first_good_packet_alone_is_no_address() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        other = await stage.device()
        await stage.listen()
        other.be_silent(1)
        await stage.received(1)
        await stage.speak("t1", "A")
        device.sequence = 1
        device.be_silent(PROOF)
        await stage.received(1 + PROOF)
        await device.packets(3)
        assert not other.received


async def test_duplicates_and_old_packets_are_counted_and_not_heard() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        first = device.seal(opus_like(1))
        device.send_raw(first)
        device.send_raw(first)
        for number in range(2, 80):
            device.send_raw(device.seal(opus_like(number)))
            if number == 40:
                await stage.received(40)
        await stage.received(80)
        device.send_raw(first)
        await stage.received(81)
        assert stage.edge.counters["replay"] == 2
        assert sum(seen == opus_like(1) for seen in stage.audio_input.seen) == 1


async def test_jump_to_the_last_sequence_number_does_not_mute_the_device() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.be_silent(1)
        device.send_raw(device.seal(opus_like(9), sequence=0xFFFFFFFF))
        device.say()
        await stage.heard()
        assert stage.edge.counters["jump"] == 1


async def test_ill_formed_and_unknown_packets_are_dropped_without_reply() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        good = device.seal(opus_like(1))
        device.send_raw(good[:15])
        device.send_raw(good + b"\0")
        device.send_raw(b"\x02" + good[1:])
        stranger = await stage.device(ssrc=99)
        for _ in range(70):
            stranger.send(opus_like(1))
        await stage.received(73)
        assert stage.edge.counters["too_short"] == 1
        assert stage.edge.counters["malformed"] == 2
        # More as soon as those that wait for a session have waited for too long.
        assert stage.edge.counters["unknown_ssrc"] in (6, 70)
        assert not device.received
        assert not stranger.received


async def test_own_packet_that_is_sent_back_is_refused() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.send_raw(device.seal(opus_like(1), sequence=5, timestamp=60, flags=packet.DOWNLINK_FLAGS))
        await stage.received(1)
        assert stage.edge.counters["flags"] == 1
        assert not stage.audio_input.seen


@pytest.mark.parametrize("payload", [b"", b"\x58", b"\xff\xff\xff"])
async def test_tiny_payload_is_a_silent_frame_that_keeps_time(payload: bytes) -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.send(opus_like(1), opus_like(2), payload, payload, opus_like(3))
        device.be_silent()
        await stage.heard()
        assert stage.asr.markers()[:4] == [1, 2, 0, 3]
        frame = 60 * 16 * 2
        assert stage.asr.heard[0].index((3).to_bytes(2, "little")) == 4 * frame


async def test_tiny_payload_without_proof_from_elsewhere_is_refused() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        forger = await stage.device()
        await stage.listen()
        device.be_silent(PROOF)
        await stage.received(PROOF)
        forger.send_raw(forger.seal(b"", sequence=20))
        forger.send_raw(forger.seal(b"\xff\xff", sequence=21))
        device.say()
        await stage.heard()
        assert stage.edge.counters["not_audio"] == 2


async def test_wake_word_audio_is_not_in_the_first_utterance() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        device.send(*(opus_like(100 + number) for number in range(33)))
        await stage.received(33)
        await stage.send("wake_word_heard", text="hi")
        await stage.listen()
        await stage.hears(device)
        device.say(first=1)
        await stage.heard()
        assert set(stage.asr.markers()) == {0, 1, 2, 3, 4, 5, 6}
        assert not any(seen[2] >= 100 for seen in stage.audio_input.seen)


async def test_wake_word_audio_that_comes_late_is_not_in_the_first_utterance() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.send("wake_word_heard", text="hi")
        await stage.listen()
        device.send(*(opus_like(100 + number) for number in range(20)))
        await stage.received(20)
        await stage.hears(device)
        device.say(first=1)
        await stage.heard()
        assert max(stage.asr.markers()) == 6


async def test_burst_after_a_gap_is_heard_whole_and_in_order() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.send(*(opus_like(number) for number in range(1, 41)))
        device.be_silent()
        await stage.heard()
        assert stage.asr.markers()[:40] == list(range(1, 41))


async def test_audio_shortly_before_listening_is_kept() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        device.send(*(opus_like(number, QUIET) for number in range(1, 11)))
        await stage.received(10)
        await stage.listen()
        device.say(first=11)
        await stage.heard()
        assert stage.asr.markers()[:5] == [6, 7, 8, 9, 10]


async def test_packets_after_push_to_talk_was_released_belong_to_the_utterance() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen("manual")
        device.send(*(opus_like(number) for number in range(1, 6)))
        await stage.received(5)
        await stage.send("listening_stopped")
        for number in (6, 7, 8):
            await elapse(0.03)
            device.send(opus_like(number))
        await stage.heard()
        assert stage.asr.markers() == [1, 2, 3, 4, 5, 6, 7, 8]


async def test_audio_while_the_answer_is_awaited_or_spoken_is_ignored_in_auto_mode() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        device.say(first=50)
        await stage.speak(turn, "A")
        device.say(first=60)
        await stage.told_at_least("stop")
        assert stage.edge.counters["not_listening"] == 22
        device.say(first=70)
        await stage.heard(2)
        assert max(stage.asr.markers()) == 75
        assert len(stage.asr.heard) == 2


async def test_packets_that_are_faster_than_the_session_are_heard() -> None:
    async with on_stage() as stage:
        device = await stage.device()
        device.send(*(opus_like(number, QUIET) for number in range(1, 4)))
        await stage.received(3)
        await open_at(stage)
        await stage.listen()
        device.say(first=4)
        await stage.heard()
        assert stage.asr.markers()[:6] == [1, 2, 3, 4, 5, 6]


async def open_at(stage: Stage) -> None:
    other = await stage.open()
    other.close()


async def test_sustained_flood_is_capped() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        for _ in range(150):
            device.be_silent(1)
        await stage.received(150)
        assert 60 <= stage.edge.counters["rate"] <= 86


async def test_lost_packets_are_marked_as_lost_and_reordered_ones_are_put_right() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        frames = [device.seal(opus_like(number)) for number in range(1, 13)]
        order = [0, 2, 1, 3, 5, 6, 7, 8, 9, 10, 11]
        for at in order:
            device.send_raw(frames[at])
        device.be_silent()
        await stage.heard()
        assert stage.asr.markers()[:12] == [1, 2, 3, 4, 0, 6, 7, 8, 9, 10, 11, 12]
        assert stage.audio_input.seen[4] == LOST


async def test_twenty_millisecond_frames_are_heard() -> None:
    async with on_stage() as stage:
        device = await stage.open(uplink_frame_ms=20)
        await stage.listen()
        device.send(*(opus_like(number, frame_ms=20) for number in range(1, 41)))
        device.send(*(opus_like(0, QUIET, frame_ms=20) for _ in range(12)))
        await stage.heard()
        assert stage.asr.markers()[:40] == list(range(1, 41))
