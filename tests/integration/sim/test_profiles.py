"""One short conversation of every kind of device, with what is peculiar to it."""

import asyncio
import json
from dataclasses import replace

import pytest

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import PROFILES, Profile
from fleet.workbench.sim.runtime.state import State
from tests.support.scripted_server import ScriptedServer, page, tone
from tests.support.sim_stage import LIMIT, MAC, patient, powered, start_speech, stop_speech, talking

SPEECH = tone(0.4, 16_000)
DOWN = "fleet/down/02:00:00:00:00:01"


def quick(name: str, **changes: object) -> Profile:
    """Return a profile whose long pauses are short."""
    return replace(patient(PROFILES[name], photo=(0.1, 0.2)), **changes)  # type: ignore[arg-type]


def broken(device: SimDevice) -> set[str]:
    return set(device.report.violation_counts)


def starts(server: ScriptedServer) -> int:
    return len([message for message in server.messages if message.get("state") == "start"])


async def handled(server: ScriptedServer) -> None:
    """Wait until the device has worked off all that came before."""
    server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 99, "method": "tools/list", "params": {}})
    await server.expect(type="mcp")


@pytest.mark.parametrize("name", sorted(PROFILES))
async def test_every_profile_holds_a_conversation(server: ScriptedServer, name: str) -> None:
    profile = quick(name)
    spacing = 1 if profile.frame_ms == 60 else 3
    async with powered(server, profile) as device, asyncio.TaskGroup() as tasks:
        manual = profile.mode == "manual"
        begin = device.wake if profile.wake_packets else device.press
        opened = None if manual else tasks.create_task(begin(seconds=LIMIT))
        turn = tasks.create_task(device.say(SPEECH, LIMIT)) if manual else None
        hello = await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="start", mode=profile.mode)
        if opened:
            assert await opened
        turn = turn or tasks.create_task(device.say(SPEECH, LIMIT))
        await server.expect_datagrams(profile.wake_packets + 6 * spacing)
        if manual:
            await server.expect(type="listen", state="stop")
        else:
            await server.expect_datagrams(profile.wake_packets + 14 * spacing)
        server.send(type="stt", session_id=server.session, text="turn on the light")
        await start_speech(server, device)
        await asyncio.sleep(profile.rtt[1] if profile.rtt else 0)
        await server.speak(8)
        await asyncio.sleep(profile.rtt[1] if profile.rtt else 0.06)
        stop_speech(server)
        assert (await turn).outcome == "answered"
        if not manual:
            assert await device.until(240, lambda: device.listening)
        assert await device.hang_up(LIMIT)
        await server.expect(type="goodbye", session_id=server.session)
    assert device.report.violations == []
    assert device.report.ok
    assert hello["features"].get("aec", False) is profile.aec
    assert hello["audio_params"]["frame_duration"] == profile.frame_ms
    assert ("glyph_push" in hello["features"]) is (profile.glyph_push is not None)
    assert bool(server.subscriptions) is False


async def test_a_c3_sends_neither_wake_audio_nor_detect_and_loses_large_messages(server: ScriptedServer) -> None:
    async with talking(server, quick("P2")) as device:
        assert not [message for message in server.messages if message.get("state") == "detect"]
        server.send(type="stt", session_id=server.session, text="x" * 6200)
        assert await device.until(240, lambda: "heap" in broken(device))
        assert not device.journal.find("stt")


async def test_with_device_aec_a_wake_word_in_speaking_listens_at_once(server: ScriptedServer) -> None:
    async with talking(server, quick("P3")) as device:
        await start_speech(server, device)
        before = len(server.datagrams)
        await server.expect_datagrams(before + 3)
        await server.speak(10, period=0.01)
        async with asyncio.TaskGroup() as tasks:
            woken = tasks.create_task(device.wake("hi", seconds=LIMIT))
            assert (await server.expect(type="abort"))["reason"] == "wake_word_detected"
            await server.expect(type="listen", state="start", mode="realtime")
            stop_speech(server)
            assert await woken


async def test_with_device_aec_nothing_is_said_after_an_answer(server: ScriptedServer) -> None:
    async with talking(server, quick("P3")) as device:
        await start_speech(server, device)
        await server.speak(3)
        stop_speech(server)
        assert await device.until(240, lambda: device.state is State.LISTENING)
        await handled(server)
        assert starts(server) == 1


async def test_in_realtime_mode_a_user_may_speak_over_the_answer(server: ScriptedServer) -> None:
    async with talking(server, quick("P3")) as device, asyncio.TaskGroup() as tasks:
        await start_speech(server, device)
        turn = tasks.create_task(device.barge_in(SPEECH, LIMIT))
        await server.expect_datagrams(len(server.datagrams) + 10)
        stop_speech(server)
        await start_speech(server, device)
        await server.speak(3)
        await asyncio.sleep(0.1)
        stop_speech(server)
        assert (await turn).outcome == "answered"


async def test_with_server_aec_played_timestamps_come_back(server: ScriptedServer) -> None:
    async with talking(server, quick("P4")) as device:
        await start_speech(server, device)
        await server.speak(8)
        await server.expect_datagrams(len(server.datagrams) + 4)
        carried = [int.from_bytes(datagram[8:12], "big") for datagram in server.datagrams]
        stamped = [one for one in carried if one]
        assert stamped
        assert set(stamped) <= {60 * number for number in range(1, 9)}
        assert stamped == sorted(stamped)
        assert broken(device) == set()


@pytest.mark.parametrize(
    "message",
    [
        {"type": "tts"},
        {"type": 7},
        {"type": "hello", "transport": "udp", "udp": {"server": "127.0.0.1", "port": 9, "key": "00" * 16}},
        {"type": "hello", "session_id": "x"},
    ],
)
async def test_old_firmware_crashes_on_what_it_dereferences(server: ScriptedServer, message: dict[str, object]) -> None:
    async with talking(server, quick("P6")) as device:
        server.send_raw(json.dumps(message).encode())
        await server.expect_connects(2)
        assert "crash" in broken(device)
        assert await device.until(240, lambda: device.state is State.IDLE)
        assert device.session == ""
        assert server.disconnects == 0
        assert not [sent for sent in server.messages if sent["type"] == "goodbye"]


async def test_old_firmware_waits_in_its_main_loop_for_the_end_of_the_sound(server: ScriptedServer) -> None:
    async with talking(server, quick("P6")) as device:
        await start_speech(server, device)
        await server.speak(12, period=0.01, lead=12)
        stop_speech(server)
        assert await device.until(240, lambda: device.state is State.LISTENING)
        await handled(server)
        assert device.journal.find("playback end"), "the answer waited too"
        assert starts(server) == 2


async def test_old_firmware_loses_the_wake_word_while_the_channel_is_open(server: ScriptedServer) -> None:
    profile = quick("P6", mode="manual")
    async with talking(server, profile) as device:
        device.release()
        assert await device.until(240, lambda: device.state is State.IDLE)
        assert not await device.wake(seconds=0.0)
        assert await device.until(LIMIT, lambda: bool(device.journal.find("wake word lost")))
        server.send(type="goodbye")
        assert await device.until(240, lambda: device.session == "")
        # The detector stays off until the state changes, which a goodbye to an idle device does not do.
        assert not await device.wake(seconds=0.0)
        assert await device.until(LIMIT, lambda: bool(device.journal.find("wake word unheard")))
        assert not device.listening


async def test_a_modem_delays_everything_and_says_what_it_is(server: ScriptedServer) -> None:
    async with powered(server, quick("P7")) as device:
        asked = device.journal.clock()
        await handled(server)
        assert device.journal.clock() - asked >= 0.15
    ((_, body),) = server.ota_requests
    board = json.loads(body)["board"]
    assert {"revision", "carrier", "csq", "imei", "iccid", "cereg"} <= board.keys()
    assert "mac" not in board
    assert device.board.status()["network"]["type"] == "cellular"  # type: ignore[index, call-overload]


async def test_a_modem_comes_back_once_if_idle_and_then_only_for_a_conversation(server: ScriptedServer) -> None:
    profile = quick("P7")
    profile = replace(profile, timing=replace(profile.timing, rebuild=0.4))
    async with powered(server, profile) as device:
        server.drop_connections()
        await server.expect_connects(2)
        assert await device.until(240, lambda: len(device.journal.find("mqtt up")) == 2)
        refused, server.refuses = server.refuses, True
        server.drop_connections()
        assert await device.until(240, lambda: len(device.journal.find("mqtt down")) == 3)
        server.refuses = refused
        tried = len(server.connects)
        assert not await device.until(1.0, lambda: len(server.connects) > tried)
        async with asyncio.TaskGroup() as tasks:
            pressed = tasks.create_task(device.press(LIMIT))
            await server.expect(type="hello")
            server.welcome()
            assert await pressed


@pytest.mark.requirement("XZ-030")
async def test_py_xiaozhi_is_connected_for_conversations_only_and_subscribes(server: ScriptedServer) -> None:
    server.ota_answer["mqtt"]["subscribe_topic"] = DOWN
    async with powered(server, quick("P8")) as device:
        assert server.connects == []
        for count in (1, 2):
            async with asyncio.TaskGroup() as tasks:
                pressed = tasks.create_task(device.press(LIMIT))
                await server.expect(type="hello")
                server.welcome()
                assert await pressed
            assert server.subscriptions == [DOWN] * count
            if count == 1:
                assert await device.hang_up(LIMIT)
                await server.expect(type="goodbye")
            else:
                server.send(type="goodbye")
            await server.expect_change(lambda: server.disconnects == count)  # noqa: B023
            assert await device.until(240, lambda: device.session == "")
    ((headers, body),) = server.ota_requests
    assert "activation-version" not in headers
    assert json.loads(body).keys() == {"application", "board"}
    assert broken(device) == {"field-missing"}, "the goodbye without an id"


async def test_py_xiaozhi_says_listen_after_an_abort_and_again_after_the_stop(server: ScriptedServer) -> None:
    async with talking(server, quick("P8")) as device:
        await start_speech(server, device)
        await server.speak(2)
        assert await device.abort(LIMIT)
        await server.expect(type="abort")
        await server.expect(type="listen", state="start", mode="auto")
        stop_speech(server)
        await server.expect(type="listen", state="start", mode="auto")
        assert starts(server) == 3
        assert broken(device) == set()


async def test_py_xiaozhi_stays_listening_in_realtime(server: ScriptedServer) -> None:
    async with talking(server, quick("P8", mode="realtime")) as device:
        await start_speech(server, device)
        assert device.state is State.LISTENING
        await server.speak(4)
        await asyncio.sleep(0.1)
        stop_speech(server)
        assert await device.until(240, lambda: not device.speaking)
        await handled(server)
        assert starts(server) == 1
        assert await device.until(LIMIT, lambda: bool(device.journal.find("playback end")))
        assert device.report.counters["downlink_played"] == 4


@pytest.mark.requirement("XZ-029")
async def test_py_xiaozhi_sends_frames_of_20_ms_and_plays_24_khz(server: ScriptedServer) -> None:
    async with powered(server, quick("P8")) as device, asyncio.TaskGroup() as tasks:
        pressed = tasks.create_task(device.press(LIMIT))
        await server.expect(type="hello")
        audio = {"format": "opus", "sample_rate": 16_000, "channels": 1, "frame_duration": 60}
        server.welcome(audio_params=audio)
        assert await pressed
        await server.expect_datagrams(3)
        assert server.channel
        assert {server.channel.open(datagram)[0] >> 3 for datagram in server.datagrams} == {9}
        await start_speech(server, device)
        await server.speak(2)
        stop_speech(server)
        assert await device.until(240, lambda: bool(device.turns.turns[0].pieces))
        assert device.turns.turns[0].sample_rate == 24_000
        assert await device.hang_up(LIMIT)


async def test_py_xiaozhis_errors_have_codes_and_failed_tools_are_results(server: ScriptedServer) -> None:
    async with talking(server, quick("P8", camera=True)):
        for number, name in ((1, "no.such.tool"), (2, "self.camera.take_photo")):
            call = {"name": name, "arguments": {"question": "what?"}}
            server.send(type="mcp", payload={"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
        first = (await server.expect(type="mcp"))["payload"]
        assert first["error"] == {"code": -32603, "message": "Unknown tool: no.such.tool"}
        second = (await server.expect(type="mcp"))["payload"]
        assert second["result"]["isError"] is True
        listing = {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "nowhere"}}
        server.send(type="mcp", payload=listing)
        assert (await server.expect(type="mcp"))["payload"]["result"] == {"tools": []}


async def test_py_xiaozhi_goes_idle_when_mqtt_breaks(server: ScriptedServer) -> None:
    async with talking(server, quick("P8")) as device:
        server.drop_connections()
        assert await device.until(240, lambda: device.state is State.IDLE and not device.session)


async def test_a_photo_takes_its_time_and_holds_up_everything_else(server: ScriptedServer) -> None:
    profile = quick("P1-camera")
    profile = replace(profile, timing=replace(profile.timing, photo=(0.6, 0.6)))
    async with talking(server, profile) as device:
        call = {"name": "self.camera.take_photo", "arguments": {"question": "what?"}}
        asked = device.journal.clock()
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        server.send(type="tts", session_id=server.session, state="start")
        answer = await server.expect(type="mcp")
        assert answer["payload"]["error"]["message"] == "Failed to capture photo"
        assert device.journal.clock() - asked >= 0.6
        assert await device.until(LIMIT, lambda: device.speaking)
        began = next(step for step in device.journal.find("state") if step.detail["state"] == "speaking")
        assert began.at - (asked - device.journal._start) >= 0.6


async def test_an_unbound_device_asks_until_it_is_bound(server: ScriptedServer) -> None:
    server.ota_answer["activation"] = {"code": "123456", "message": "bind me", "challenge": "c", "timeout_ms": 30_000}
    server.activation_statuses = [202, 202, 200]
    profile = quick("P1")
    profile = replace(profile, timing=replace(profile.timing, activate_soon=0.05))
    async with powered(server, profile) as device:
        assert [step.detail["status"] for step in device.journal.find("activation")] == [202, 202, 200]
        assert [step.detail["code"] for step in device.journal.find("activation code")] == ["123456"]
    assert server.activations == [b"{}"] * 3
    assert len(server.ota_requests) == 2


@pytest.mark.requirement("XZ-048")
@pytest.mark.parametrize(("length", "installed"), [(b"Content-Length", True), (b"content-length", False)])
async def test_firmware_is_installed_only_if_its_length_is_spelled_as_modems_read_it(
    server: ScriptedServer, length: bytes, installed: bool
) -> None:
    server.pages["/firmware.bin"] = page(b"\xe9" * 5000, length)
    async with talking(server, quick("P1")) as device:
        url = server.ota_url.replace("/ota/", "/firmware.bin")
        call = {"name": "self.upgrade_firmware", "arguments": {"url": url}}
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        await server.expect(type="goodbye")
        if installed:
            await server.expect_connects(2)
            assert not [message for message in server.messages if message["type"] == "mcp"]
            assert broken(device) == set()
        else:
            assert (await server.expect(type="mcp"))["payload"]["result"]["isError"] is False
            assert broken(device) == {"download-length"}


async def test_assets_are_fetched_once_at_the_next_start(server: ScriptedServer) -> None:
    server.pages["/assets.bin"] = page(b"assets" * 100)
    async with powered(server, quick("P1")) as device:
        url = server.ota_url.replace("/ota/", "/assets.bin")
        for number, (name, arguments) in enumerate(
            (("self.assets.set_download_url", {"url": url}), ("self.reboot", {})), 1
        ):
            call = {"name": name, "arguments": arguments}
            server.send(type="mcp", payload={"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
        await server.expect_connects(2)
        (step,) = device.journal.find("assets")
        assert step.detail["bytes"] == 600
        assert device.board.assets_url == ""


async def test_a_bootstrap_body_of_8_kb_hangs_the_device(server: ScriptedServer) -> None:
    server.ota_answer["padding"] = "x" * 8200
    device = SimDevice(quick("P1"), ota_url=server.ota_url, mac=MAC)
    with pytest.raises(Exception, match="hangs on"):
        async with asyncio.timeout(240), device.running():
            pytest.fail("entered")
    assert {"ota-size", "body-hang"} <= broken(device)


async def test_py_xiaozhi_sends_what_is_typed_as_detect_and_hears_the_answer(server: ScriptedServer) -> None:
    text = 'say "hi"\n几点了'
    async with powered(server, quick("P8")) as device, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(device.type(text, LIMIT))
        await server.expect(type="hello")
        server.welcome()
        await server.expect(type="listen", state="start")
        assert (await server.expect(type="listen", state="detect"))["text"] == text
        server.send(type="stt", session_id=server.session, text=text)
        async with asyncio.timeout(240):
            while server.device_address is None:
                await asyncio.sleep(0.01)
        await start_speech(server, device)
        await asyncio.sleep(0.06)
        await server.speak(4)
        await asyncio.sleep(0.06)
        stop_speech(server)
        assert ((await turn).outcome, turn.result().transcript) == ("answered", text)
        second = tasks.create_task(device.type("again", LIMIT))
        await server.expect(type="listen", state="detect", text="again")
        second.cancel()
    assert device.report.violations == []
