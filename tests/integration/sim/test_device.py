"""The simulated device against a server that follows, and breaks, the contract as the test says."""

import asyncio
import io
import json
import wave
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import numpy as np
import pytest

from fleet.ground.errors import Unavailable
from fleet.workbench.sim.conversation import Script, converse
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import PROFILES, Dialect, Mode, Profile
from fleet.workbench.sim.records.turns import Turn
from fleet.workbench.sim.runtime.state import State
from tests.support import sim_stage
from tests.support.scripted_server import ScriptedServer, tone
from tests.support.sim_stage import LIMIT, MAC, patient, run_on, start_speech, stop_speech

QUICK = patient(PROFILES["P1"])
CLEAR_SECONDS = 12.0
SLOW = replace(QUICK, timing=replace(QUICK.timing, clear=(CLEAR_SECONDS, CLEAR_SECONDS)))
"""Clears its queue so late that what comes at once is early: with `clearing`, when the test says so."""
SPEECH = tone(0.4, 16_000)


def powered(server: ScriptedServer, profile: Profile = QUICK) -> AbstractAsyncContextManager[SimDevice]:
    return sim_stage.powered(server, profile)


def talking(server: ScriptedServer, profile: Profile = QUICK) -> AbstractAsyncContextManager[SimDevice]:
    return sim_stage.talking(server, profile)


def broken(device: SimDevice) -> set[str]:
    return set(device.report.violation_counts)


async def answer(server: ScriptedServer, device: SimDevice, *, heard: int, packets: int = 8) -> None:
    """Answer an utterance once so many datagrams came in all."""
    await server.expect_datagrams(heard)
    server.send(type="stt", session_id=server.session, text="turn on the light")
    server.send(type="llm", session_id=server.session, emotion="happy", text="x")
    await start_speech(server, device)
    server.send(type="tts", session_id=server.session, state="sentence_start", text="Done.")
    await server.speak(packets)
    await asyncio.sleep(0.06)
    stop_speech(server)


async def test_a_whole_conversation_by_wake_word(server: ScriptedServer) -> None:
    async with powered(server) as device, asyncio.TaskGroup() as tasks:
        talk = tasks.create_task(converse(device, Script([SPEECH], wake_text="hello there", pause=0.0)))
        hello = await server.expect(type="hello")
        assert hello["version"] == 3
        assert hello["features"]["mcp"] is True
        assert hello["audio_params"] == {"format": "opus", "sample_rate": 16_000, "channels": 1, "frame_duration": 60}
        server.welcome()
        detect = await server.expect(type="listen", state="detect")
        assert (detect["text"], detect["session_id"]) == ("hello there", server.session)
        await server.expect_datagrams(33)
        started = await server.expect(type="listen", state="start")
        assert started["mode"] == "auto"
        await server.expect_speech(after=33)
        await answer(server, device, heard=33 + 12)
        await server.expect(type="listen", state="start")
        await server.expect(type="goodbye", session_id=server.session)
        (turn,) = await talk
    report = device.report
    assert report.violations == []
    assert report.ok
    assert (turn.outcome, turn.transcript, turn.reply) == ("answered", "turn on the light", "Done.")
    assert set(turn.latencies) == {"stt", "tts_start", "first_packet", "first_audible"}
    assert turn.latencies["tts_start"] <= turn.latencies["first_packet"] <= turn.latencies["first_audible"]
    assert report.counters["downlink_played"] == 8
    json.loads(report.model_dump_json())


async def test_the_device_never_subscribes_and_bootstraps_with_all_headers(server: ScriptedServer) -> None:
    async with powered(server):
        pass
    ((headers, body),) = server.ota_requests
    assert headers["device-id"] == MAC
    assert headers["activation-version"] == "1"
    assert headers["user-agent"] == "bread-compact-wifi/2.4.2"
    assert "client-id" in headers
    assert json.loads(body)["application"]["version"] == "2.4.2"
    assert server.subscriptions == []
    (connect,) = server.connects
    assert connect["level"] == 4
    assert connect["flags"] == 0b11000010, "user name, password, clean session, no will"
    assert connect["keepalive"] == 30


async def test_uplink_counts_from_one_and_is_what_was_said(server: ScriptedServer) -> None:
    async with talking(server) as device, asyncio.TaskGroup() as tasks:
        said = tasks.create_task(device.say(SPEECH, LIMIT))
        await server.expect_datagrams(14)
        numbers = [int.from_bytes(datagram[12:16], "big") for datagram in server.datagrams]
        assert numbers == list(range(1, len(numbers) + 1))
        assert server.channel
        payloads = [server.channel.open(datagram) for datagram in server.datagrams]
        assert {payload[0] for payload in payloads} == {0x58}
        assert max(map(len, payloads)) > 30
        assert all(datagram[8:12] == bytes(4) for datagram in server.datagrams)
        server.send(type="goodbye", session_id=server.session)
        turn = await said
    assert turn.outcome == "closed"
    spoken = turn.times["end of speech"] - turn.times["speech begins"]
    assert spoken == pytest.approx(0.4, abs=0.03), "a frame of 60 ms takes 60 ms"


async def test_what_was_played_comes_out_as_a_wav(server: ScriptedServer) -> None:
    async with talking(server) as device:
        await start_speech(server, device)
        await server.speak(10)
        await asyncio.sleep(0.06)
        stop_speech(server)
        assert await device.until(240, lambda: device.turns.open is None)
    with wave.open(io.BytesIO(device.heard_wav(0)), "rb") as file:
        assert file.getframerate() == 24_000
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)
    assert 0.55 < np.count_nonzero(np.abs(samples) > 100) / 24_000 < 0.65, "silence may be between packets"
    loudest = np.abs(np.fft.rfft(samples)).argmax() * 24_000 / len(samples)
    assert 430 < loudest < 450


async def test_a_burst_of_fifty_packets_overflows_mailbox_or_queue(server: ScriptedServer) -> None:
    async with talking(server) as device:
        await start_speech(server, device)
        # Made before, so that their making does not hold up the device, which shares this process.
        datagrams = [server.seal(server.encoder.encode(tone(0.06))) for _ in range(50)]
        await asyncio.sleep(0.2)
        for datagram in datagrams:
            server.send_datagram(datagram)
        assert await received(device, 50)
        # On a busy machine the mailbox is not judged; then the queue overflows.
        assert broken(device) & {"mailbox-overflow", "queue-overflow"}


async def test_fifty_packets_in_half_a_second_overflow_the_queue(server: ScriptedServer) -> None:
    async with talking(server) as device:
        await start_speech(server, device)
        # Made before, so that they come faster than they are played on a busy machine, too.
        datagrams = [server.seal(server.encoder.encode(tone(0.06))) for _ in range(150)]
        for count, datagram in enumerate(datagrams, 1):
            server.send_datagram(datagram)
            # Each is read before the next one comes, 2 ms later: otherwise the mailbox would overflow first.
            assert await received(device, count)
        assert "queue-overflow" in broken(device)
        assert device.report.counters["queue_deepest"] == 40


async def received(device: SimDevice, count: int) -> bool:
    """Wait until so many datagrams were taken account of."""
    async with asyncio.timeout(240):
        while device.journal.counters["downlink_received"] < count:
            await asyncio.sleep(0.002)
    return True


@pytest.fixture
def clearing(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Lets devices that are `SLOW` clear their queue."""
    now, sleep = asyncio.Event(), asyncio.sleep

    async def sleep_or_wait(seconds: float) -> None:
        await (now.wait() if seconds == CLEAR_SECONDS else sleep(seconds))

    monkeypatch.setattr(asyncio, "sleep", sleep_or_wait)
    return now


async def send_too_early(server: ScriptedServer, device: SimDevice, pcm: bytes) -> None:
    """Begin an answer with a packet that a device which is `SLOW` gets before it has cleared its queue."""
    begun = device.journal.clock()
    server.send(type="tts", session_id=server.session, state="start")
    assert await device.until(240, lambda: device.state is State.SPEAKING)
    server.send_datagram(server.seal(server.encoder.encode(pcm)))
    await received(device, 1)
    came, lag = device.journal.clock(), device._power.boot.gate._gaps
    # The time for which this process stood still is not the server's, who may have sent the packet after it.
    while device.journal.clock() - lag.held_up(begun) <= came:
        await asyncio.sleep(0.02)


async def test_the_same_key_twice_is_told(server: ScriptedServer) -> None:
    async with talking(server) as device:
        key = server.welcome()
        assert await device.until(240, lambda: device.session == server.session)
        assert broken(device) == set()
        server.welcome(key=key)
        assert await device.until(240, lambda: device.session == server.session)
        assert broken(device) == {"hello-key-reuse"}


async def test_missing_fields_are_told_and_survived(server: ScriptedServer) -> None:
    async with talking(server) as device:
        server.send(type="tts", session_id=server.session)
        server.send_raw(b'{"no":"type"}')
        server.send_raw(b"not json")
        server.send(type="a new kind of message")
        await start_speech(server, device)
        assert broken(device) == {"field-missing", "json-invalid"}
        assert device.report.violation_counts["json-invalid"] == 2


async def test_a_number_that_does_not_rise_is_refused(server: ScriptedServer) -> None:
    async with talking(server) as device:
        await start_speech(server, device)
        datagram = server.seal(server.encoder.encode(tone(0.06)))
        server.send_datagram(datagram)
        server.send_datagram(datagram)
        assert await received(device, 2)
        assert broken(device) == {"sequence"}
        assert device.report.counters["downlink_refused_sequence"] == 1


async def test_sound_that_comes_right_after_tts_start_is_lost_and_told(
    server: ScriptedServer, clearing: asyncio.Event
) -> None:
    async with talking(server, SLOW) as device:
        await send_too_early(server, device, tone(0.06))
        clearing.set()
        assert await device.until(240, lambda: device.report.counters.get("downlink_cleared") == 1)
        assert broken(device) == {"audio-before-clear"}


async def test_silence_may_be_lost_before_the_queue_is_cleared(server: ScriptedServer, clearing: asyncio.Event) -> None:
    async with talking(server, SLOW) as device:
        await send_too_early(server, device, bytes(2880))
        clearing.set()
        assert await device.until(240, lambda: device.report.counters.get("downlink_cleared") == 1)
        assert broken(device) == set()


async def test_audio_to_a_listening_device_is_dropped_and_told(server: ScriptedServer) -> None:
    async with talking(server) as device:
        server.send_datagram(server.seal(server.encoder.encode(tone(0.06))))
        assert await received(device, 1)
        assert broken(device) == {"audio-outside-speaking"}


async def test_a_hole_in_a_sentence_is_an_underrun_and_one_between_sentences_a_pause(server: ScriptedServer) -> None:
    async with talking(server) as device:
        await start_speech(server, device)
        await server.speak(4)
        await run_on(0.8)
        server.send(type="tts", session_id=server.session, state="sentence_start", text="Second.")
        await server.speak(8)
        assert broken(device) == set()
        await run_on(0.8)
        await server.speak(1)
        assert await received(device, 13)
        stop_speech(server)
        assert await device.until(240, lambda: device.state is State.LISTENING)
        assert broken(device) == {"underrun"}
        assert (device.report.counters["pauses"], device.report.counters["underruns"]) == (1, 1)


async def test_a_hello_without_answer_leads_back_to_idle(server: ScriptedServer) -> None:
    async with powered(server, patient(PROFILES["P1"], hello=0.4)) as device:
        assert not await device.press(0.8)
        assert await device.until(LIMIT, lambda: device.state is State.IDLE)
        assert broken(device) == {"hello-missing"}
        server.welcome()
        assert await device.until(240, lambda: "hello-late" in broken(device))
        assert device.session == ""


async def test_the_device_comes_back_after_its_connection_was_lost(server: ScriptedServer) -> None:
    async with powered(server) as device:
        server.drop_connections()
        await server.expect_connects(2)
        assert server.subscriptions == []
        assert device.state is State.IDLE


async def test_a_lost_connection_leaves_the_audio_alone(server: ScriptedServer) -> None:
    async with talking(server) as device:
        server.drop_connections()
        before = len(server.datagrams)
        await server.expect_connects(2)
        await server.expect_datagrams(before + 5)
        assert device.listening
        assert [message["type"] for message in server.messages].count("hello") == 1


async def test_only_a_goodbye_with_the_live_session_closes(server: ScriptedServer) -> None:
    async with talking(server) as device:
        server.send(type="goodbye", session_id="another")
        assert await starts_after_all_is_handled(server) == 1
        assert device.state is State.LISTENING
        server.send(type="goodbye", session_id=server.session)
        assert await device.until(240, lambda: device.state is State.IDLE)
        assert device.session == ""
        assert not [message for message in server.messages if message["type"] == "goodbye"]


@pytest.mark.requirement("XZ-049")
@pytest.mark.parametrize("goodbye_first", [True, False])
@pytest.mark.parametrize("mode", ["auto", "manual", "realtime"])
async def test_tts_stop_and_goodbye_lead_to_idle_in_either_order(
    server: ScriptedServer, mode: Mode, *, goodbye_first: bool
) -> None:
    async with talking(server, replace(QUICK, mode=mode)) as device:
        await start_speech(server, device)
        kinds = ["goodbye", "tts"] if goodbye_first else ["tts", "goodbye"]
        for kind in kinds:
            server.send(type=kind, session_id=server.session, **({"state": "stop"} if kind == "tts" else {}))
        starts = await starts_after_all_is_handled(server)
        assert (device.state, device.session) == (State.IDLE, "")
        assert starts == 1 or not goodbye_first, "after a goodbye, `tts stop` lets nobody listen"


async def test_the_button_interrupts_and_waits_for_tts_stop(server: ScriptedServer) -> None:
    async with talking(server) as device, asyncio.TaskGroup() as tasks:
        await start_speech(server, device)
        await server.speak(3)
        stopped = tasks.create_task(device.abort(LIMIT))
        abort = await server.expect(type="abort")
        assert "reason" not in abort
        assert device.state is State.SPEAKING
        stop_speech(server)
        assert await stopped
        assert await device.until(240, lambda: device.turns.open is None)
        assert device.turns.turns[0].outcome == "aborted"
        await server.expect(type="listen", state="start")
        assert broken(device) == set()


async def test_an_interruption_without_answer_is_told(server: ScriptedServer) -> None:
    limits = replace(QUICK.limits, abort_answer=0.2)
    async with talking(server, replace(QUICK, limits=limits)) as device:
        await start_speech(server, device)
        assert not await device.abort(0.1)
        assert await device.until(240, lambda: "abort-unanswered" in broken(device))


async def test_a_device_left_speaking_is_told(server: ScriptedServer) -> None:
    limits = replace(QUICK.limits, stuck=0.5)
    async with talking(server, replace(QUICK, limits=limits)) as device:
        await start_speech(server, device)
        assert await device.until(240, lambda: "stuck-speaking" in broken(device))


async def test_a_wake_word_interrupts_and_listens_at_once(server: ScriptedServer) -> None:
    async with talking(server) as device, asyncio.TaskGroup() as tasks:
        await start_speech(server, device)
        woken = tasks.create_task(device.wake("hi", seconds=LIMIT))
        abort = await server.expect(type="abort")
        assert abort["reason"] == "wake_word_detected"
        await server.expect(type="listen", state="start", mode="auto")
        stop_speech(server)
        assert await woken
        assert not [message for message in server.messages if message.get("state") == "detect"]


async def test_push_to_talk_goes_idle_but_keeps_the_channel(server: ScriptedServer) -> None:
    manual = replace(QUICK, mode="manual")
    async with powered(server, manual) as device, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(device.say(SPEECH, LIMIT))
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="start", mode="manual")
        await server.expect(type="listen", state="stop")
        assert await device.until(LIMIT, lambda: device.state is State.IDLE)
        assert device.session == server.session
        await answer(server, device, heard=5)
        assert (await turn).outcome == "answered"
        assert device.state is State.IDLE
        assert await device.hang_up(LIMIT)
        await server.expect(type="goodbye")
        assert broken(device) == set()


@pytest.mark.parametrize("dialect", ["stock", "python"])
async def test_push_to_talk_over_an_answer_is_announced_by_firmware_alone(
    server: ScriptedServer, dialect: Dialect
) -> None:
    manual = replace(QUICK, mode="manual", dialect=dialect)
    async with powered(server, manual) as device, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(device.say(SPEECH, LIMIT))
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="stop")
        await start_speech(server, device)
        await server.speak(3)
        second = tasks.create_task(device.interject(SPEECH, LIMIT))
        if dialect == "stock":
            await server.expect(type="abort")
            stop_speech(server)
        await server.expect(type="listen", state="start", mode="manual")
        await server.expect(type="listen", state="stop")
        await answer(server, device, heard=5)
        assert (await first).outcome == "aborted"
        assert (await second).outcome == "answered"
        aborts = [message for message in server.messages if message["type"] == "abort"]
        assert len(aborts) == (dialect == "stock")
        assert broken(device) == set()


@pytest.mark.requirement("XZ-033")
async def test_a_stop_ends_the_press_of_py_xiaozhi_under_the_finger(server: ScriptedServer) -> None:
    manual = replace(QUICK, mode="manual", dialect="python")
    async with powered(server, manual) as device, asyncio.TaskGroup() as tasks:
        pressed = tasks.create_task(device.press(LIMIT))
        await server.expect(type="hello")
        server.welcome()
        assert await pressed
        stop_speech(server)
        assert await device.until(240, lambda: device.state is State.IDLE)


async def test_in_realtime_mode_the_microphone_stays_on_while_the_device_speaks(server: ScriptedServer) -> None:
    async with talking(server, replace(QUICK, mode="realtime")) as device:
        await start_speech(server, device)
        before = len(server.datagrams)
        await server.expect_datagrams(before + 5)
        stop_speech(server)
        assert await device.until(240, lambda: device.listening)
        assert await starts_after_all_is_handled(server) == 1


async def test_an_answer_that_begins_and_ends_while_the_device_is_busy_changes_nothing(server: ScriptedServer) -> None:
    busy = replace(QUICK, timing=replace(QUICK.timing, tool=(0.2, 0.2)))
    async with talking(server, busy) as device:
        call = {"name": "self.lamp.turn_on", "arguments": {}}
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        server.send(type="tts", session_id=server.session, state="start")
        stop_speech(server)
        await server.expect(type="mcp")
        assert await starts_after_all_is_handled(server) == 1
        assert device.listening


async def starts_after_all_is_handled(server: ScriptedServer) -> int:
    """Return how many times the device began to listen, once it has worked off all that came before."""
    server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 99, "method": "tools/list", "params": {}})
    await server.expect(type="mcp")
    return len([message for message in server.messages if message.get("state") == "start"])


async def test_tools_work_without_a_session_and_change_the_board(server: ScriptedServer) -> None:
    async with powered(server) as device:
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        first = await server.expect(type="mcp")
        assert first["session_id"] == ""
        assert first["payload"]["result"]["serverInfo"]["version"] == "2.4.2"
        server.send(type="mcp", payload={"jsonrpc": "2.0", "method": "notifications/initialized"})
        call = {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 30}}
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        second = await server.expect(type="mcp")
        assert second["payload"] == {
            "jsonrpc": "2.0",
            "id": 2,
            "result": {"content": [{"type": "text", "text": "true"}], "isError": False},
        }
        assert device.board.volume == 30
        (step,) = device.journal.find("tool call")
        assert step.detail["args"] == {"volume": 30}
        assert device.report.tools["volume"] == 30


async def test_a_restart_is_never_answered_and_boots_again(server: ScriptedServer) -> None:
    async with powered(server) as device:
        call = {"name": "self.reboot", "arguments": {}}
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        await server.expect_connects(2)
        assert len(server.ota_requests) == 2
        assert not [message for message in server.messages if message["type"] == "mcp"]
        assert await device.until(240, lambda: device.state is State.IDLE)


async def test_a_channel_that_was_silent_for_too_long_is_opened_afresh(server: ScriptedServer) -> None:
    stale = replace(QUICK, mode="manual", timing=replace(QUICK.timing, stale=0.3))
    async with powered(server, stale) as device, asyncio.TaskGroup() as tasks:
        for _ in range(2):
            pressed = tasks.create_task(device.press(LIMIT))
            await server.expect(type="hello")
            server.welcome()
            assert await pressed
            device.release()
            assert await device.until(240, lambda: device.state is State.IDLE)
            await asyncio.sleep(0.4)
        assert not [message for message in server.messages if message["type"] == "goodbye"]


async def test_tts_start_to_an_idle_device_is_told(server: ScriptedServer) -> None:
    async with powered(server) as device:
        server.send(type="tts", session_id="", state="start")
        assert await device.until(240, lambda: device.state is State.SPEAKING)
        assert broken(device) == {"speech-without-channel"}


async def test_an_utterance_without_answer_ends_at_its_limit(server: ScriptedServer) -> None:
    async with talking(server) as device:
        turn: Turn = await device.say(SPEECH, 1.0)
    assert turn.outcome == "timeout"
    assert not device.report.ok


async def test_a_server_that_is_not_there_is_told_at_once() -> None:
    device = SimDevice(QUICK, ota_url="http://127.0.0.1:1/ota/", mac=MAC)
    async with asyncio.timeout(240):
        with pytest.raises(Unavailable, match="bootstrap"):
            async with device.running():
                pytest.fail("entered without a server")
