"""What the knobs do to a conversation, and that the server is not blamed for it."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import PROFILES, Profile
from fleet.workbench.sim.runtime.state import State
from tests.support import sim_stage
from tests.support.scripted_server import ScriptedServer
from tests.support.sim_stage import LIMIT, patient, run_on, start_speech

P1 = PROFILES["P1"]
QUICK = patient(P1)
IMPATIENT = patient(P1, hello=2.0)


def powered(server: ScriptedServer, faults: Faults, profile: Profile = QUICK) -> AbstractAsyncContextManager[SimDevice]:
    return sim_stage.powered(server, profile, faults)


def talking(server: ScriptedServer, faults: Faults) -> AbstractAsyncContextManager[SimDevice]:
    return sim_stage.talking(server, QUICK, faults)


def broken(device: SimDevice) -> set[str]:
    return set(device.report.violation_counts)


async def until(holds: object, seconds: float = LIMIT) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # type: ignore[operator]
            await asyncio.sleep(0.01)


def arrived(server: ScriptedServer) -> set[int]:
    """Return the numbers of the packets that came."""
    return {int.from_bytes(datagram[12:16], "big") for datagram in server.datagrams}


async def speak_a_while(server: ScriptedServer, device: SimDevice, packets: int) -> None:
    await start_speech(server, device)
    await server.speak(packets, period=0.055, lead=4)
    await asyncio.sleep(0.3)
    server.send(type="tts", session_id=server.session, state="stop")
    assert await device.until(240, lambda: device.listening)


async def test_lost_doubled_and_overtaken_packets_are_not_the_servers_fault(server: ScriptedServer) -> None:
    faults = Faults(loss=0.2, reorder=0.2, duplicate=0.25)
    async with talking(server, faults) as device:
        await speak_a_while(server, device, 50)
        counters = device.report.counters
        assert broken(device) == set()
        assert counters["downlink_received"] == 50
        assert counters["downlink_lost"] > 0
        assert counters["downlink_refused_sequence"] > 0
        assert counters["downlink_accepted"] + counters["downlink_refused_sequence"] > 50 - counters["downlink_lost"]
        await until(lambda: device.journal.counters["uplink_lost"] > 0)
        sent = device.report.counters["uplink_sent"]
        # Late ones are overtaken by two at most.
        await until(lambda: max(arrived(server)) > sent + 5)
        assert {number for number in arrived(server) if number <= sent} < set(range(1, sent + 1)), "some are missing"


async def test_a_hole_beyond_what_the_network_lost_is_still_the_servers_fault(server: ScriptedServer) -> None:
    async with talking(server, Faults(loss=0.05)) as device:
        await start_speech(server, device)
        await server.speak(10)
        await run_on(1.5)
        await server.speak(10)
        server.send(type="tts", session_id=server.session, state="stop")
        assert await device.until(240, lambda: device.listening)
        assert "underrun" in broken(device)


async def test_uplink_goes_on_from_another_port_and_the_device_hears_there(server: ScriptedServer) -> None:
    async with talking(server, Faults(rebind_at=4)) as device:
        first = server.addresses[0]
        await server.expect_datagrams(6)
        assert server.device_address
        assert server.device_address[1] != first[1]
        await speak_a_while(server, device, 5)
        assert device.report.counters["downlink_played"] == 5
        assert broken(device) == set()


async def test_rebinding_may_come_again_and_again(server: ScriptedServer) -> None:
    async with talking(server, Faults(rebind_every=3)) as device:
        await server.expect_datagrams(11)
        ports = [port for _, port in server.addresses[:11]]
        assert len(set(ports)) == 4
        assert ports == sorted(ports, key=ports.index), "a port does not come back"
        assert [ports.index(port) for port in dict.fromkeys(ports)] == [0, 3, 6, 9]
        assert len(device.journal.find("rebind")) >= 3


async def test_a_half_open_connection_swallows_messages_until_it_recovers(server: ScriptedServer) -> None:
    async with powered(server, Faults(half_open=1.0, half_open_at=0.5)) as device:
        await until(lambda: device.journal.find("mqtt frozen"))
        async with asyncio.TaskGroup() as tasks:
            pressed = tasks.create_task(device.press(LIMIT))
            await until(lambda: device.journal.find("hello"))
            server.send(type="stt", session_id="", text="swallowed for now")
            await server.expect(type="hello")
            (thawed,) = device.journal.find("mqtt thawed")
            server.welcome()
            assert await pressed
        (heard,) = device.journal.find("stt")
        assert heard.at >= thawed.at
        assert broken(device) == set()
        assert len(server.connects) == 1


async def test_a_hello_that_dies_in_a_half_open_connection_is_not_the_servers_fault(server: ScriptedServer) -> None:
    async with powered(server, Faults(half_open=20.0, half_open_at=0.05), IMPATIENT) as device:
        await until(lambda: device.journal.find("mqtt frozen"))
        assert not await device.press(2.5)
        await until(lambda: device.report.excused == {"hello-missing": 1})
        await until(lambda: device.state is State.IDLE)
        assert broken(device) == set()


async def test_a_late_hello_is_waited_for_or_given_up(server: ScriptedServer) -> None:
    async with powered(server, Faults(late_hello=0.6)) as device, asyncio.TaskGroup() as tasks:
        pressed = tasks.create_task(device.press(LIMIT))
        await server.expect(type="hello")
        server.welcome()
        assert not await device.until(0.3, lambda: device.session != "")
        assert await pressed
    async with powered(server, Faults(late_hello=2.4), IMPATIENT) as device:
        async with asyncio.TaskGroup() as tasks:
            pressed = tasks.create_task(device.press(2.2))
            await server.expect(type="hello")
            server.welcome()
            assert not await pressed
        assert await device.until(240, lambda: "hello-late" in device.report.excused)
        assert device.session == ""
        assert broken(device) == set()


async def test_a_second_hello_makes_the_second_answer_count(server: ScriptedServer) -> None:
    async with talking(server, Faults(second_hello=0.1)) as device:
        first = server.session
        # It may have come before the microphone was on.
        await until(lambda: [message.get("type") for message in server.messages].count("hello") == 2)
        server.welcome()
        assert await device.until(240, lambda: device.session == server.session)
        assert device.session != first
        await server.expect(type="listen", state="start", session_id=server.session)
        await speak_a_while(server, device, 4)
        assert device.report.counters["downlink_played"] == 4
        assert broken(device) == set()


async def test_forged_packets_bear_the_ssrc_and_come_from_elsewhere(server: ScriptedServer) -> None:
    async with talking(server, Faults(forged=1.0)) as device:
        await server.expect_datagrams(10)
        assert server.channel
        assert len({datagram[4:8] for datagram in server.datagrams}) == 1
        assert len(set(server.addresses)) == 2
        assert device.report.counters["forged"] >= 4


async def test_junk_is_sent_between_the_messages(server: ScriptedServer) -> None:
    async with talking(server, Faults(broken_json=1.0)) as device:
        assert device.report.counters["junk"] >= 2
        assert [message["type"] for message in server.messages if message.get("type") == "hello"]


async def test_names_and_texts_that_break_json_are_sent_as_they_are(server: ScriptedServer) -> None:
    async with powered(server, Faults(invalid_utf8=1.0)) as device, asyncio.TaskGroup() as tasks:
        woken = tasks.create_task(device.wake(seconds=LIMIT))
        await server.expect(type="hello")
        server.welcome()
        assert await woken
        await server.expect(type="listen", state="start")
        call = {"name": "self.get_system_info", "arguments": {}}
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        await server.expect_change(lambda: len(server.junk) == 2)
    detect, answer = server.junk
    assert b'"state":"detect"' in detect
    assert b"\xe9" in answer
    ((_, body),) = server.ota_requests
    with pytest.raises(UnicodeDecodeError):
        body.decode()
    device.report.model_dump_json()


async def test_a_tool_fails_with_a_text_that_is_not_escaped(server: ScriptedServer) -> None:
    async with powered(server, Faults(tool_errors=1.0)) as device:
        call = {"name": "self.lamp.turn_on", "arguments": {}}
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        await server.expect_change(lambda: bool(server.junk))
        assert not device.board.lamp


async def test_the_same_seed_loses_the_same_packets() -> None:
    lost: list[list[int]] = []
    for _ in range(2):
        async with ScriptedServer.running() as server, talking(server, Faults(loss=0.3)):
            await until(lambda: max(arrived(server)) > 12)
            lost.append([number for number in range(1, 13) if number not in arrived(server)])
    assert lost[0] == lost[1]
    assert lost[0]
