"""M10 of the device's contract: a device that lost its connection and comes back."""

from typing import Any

import pytest

from fleet.roles.worker.sessions import returns
from fleet.wire import edge_messages
from tests.integration.worker.scene import HELLO, Scene, says
from tests.integration.worker.scripted import Device
from tests.support.leaping import leaping


async def test_the_edge_of_a_live_session_hears_that_its_device_came_back(stage: Scene) -> None:
    session = await stage.greet()
    await stage.reconnect()
    returned = await stage.edge.next(edge_messages.DeviceReturnedCommand)
    assert (returned.device, returned.session) == (stage.device.mac, session)
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "still there?")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    assert await stage.spoken() == ["Yes."]


async def test_a_device_that_missed_the_end_of_its_session_is_told_of_it(stage: Scene) -> None:
    session = await _miss_the_end(stage, stage.device)
    await stage.reconnect()
    heard = await _heard(stage, stage.device)
    assert [one for one in heard if one["type"] != "mcp"] == [{"type": "goodbye", "session_id": session}]


async def test_a_device_that_ended_its_session_itself_is_told_nothing(stage: Scene) -> None:
    session = await stage.greet()
    await stage.device.say({"type": "goodbye", "session_id": session})
    await stage.edge.next(edge_messages.CloseSessionCommand)
    await stage.reconnect()
    assert {one["type"] for one in await _heard(stage, stage.device)} == {"mcp"}


async def test_a_device_that_never_had_a_session_is_told_nothing(stage: Scene) -> None:
    await stage.reconnect()
    assert {one["type"] for one in await _heard(stage, stage.device)} == {"mcp"}


async def test_a_device_that_says_hello_at_once_hears_nothing_of_its_last_session(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Firmware would take a goodbye of the last session for one of the new."""
    leap = leaping(monkeypatch)
    monkeypatch.setattr(returns, "GRACE_SECONDS", 100.0)
    await _miss_the_end(stage, stage.device)
    await stage.reconnect()
    await stage.device.say(HELLO)
    heard = [await stage.device.hear()]
    while heard[-1]["type"] != "hello":
        heard.append(await stage.device.hear())
    leap(101.0)
    heard += await _until_marked(stage.device)
    assert [one["type"] for one in heard if one["type"] != "mcp"] == ["hello"]


@pytest.mark.requirement("REG-26")
async def test_a_device_of_which_nothing_is_known_is_sent_nothing_until_it_speaks(stage: Scene) -> None:
    device = await stage.unknown_device()
    assert await _heard(stage, device) == []
    await device.say(HELLO)
    assert [(await device.hear())["type"] for _ in range(2)] == ["hello", "mcp"]
    await device.close()


async def _miss_the_end(stage: Scene, device: Device) -> str:
    """Let a session end while its device is away; return the session."""
    await device.say(HELLO)
    session = str((await device.hear_type("hello"))["session_id"])
    await device.close()
    await stage.post(edge_messages.SessionSilentEvent(device=device.mac, session=session, reason="idle"))
    while (await stage.edge.until(edge_messages.CloseSessionCommand)).session != session:
        pass
    return session


async def _heard(stage: Scene, device: Device) -> list[dict[str, Any]]:
    """Return what a device hears before another one, that came back after it, was told how things stand."""
    witness = await stage.another_device()
    await _miss_the_end(stage, witness)
    witness = await Device.connect(stage.broker, stage.keys, witness.mac)
    await witness.hear_type("goodbye")
    await witness.close()
    return await _until_marked(device)


async def _until_marked(device: Device) -> list[dict[str, Any]]:
    """Return what a device hears before the answer to what it says now."""
    await device.say({"type": "listen", "session_id": "marker", "state": "stop"})
    heard = []
    while (message := await device.hear()) != {"type": "goodbye", "session_id": "marker"}:
        heard.append(message)
    return heard


async def test_a_device_that_asked_twice_may_listen_under_its_first_answer(stage: Scene) -> None:
    for _ in range(2):
        await stage.device.say(HELLO)
    first, second = [(await stage.device.hear_type("hello"))["session_id"] for _ in range(2)]
    assert [(await stage.session()).session for _ in range(2)] == [first, second]
    await stage.device.say({"type": "listen", "session_id": first, "state": "start", "mode": "auto"})
    assert (await stage.edge.next(edge_messages.StartListeningCommand)).session == second


async def test_a_session_older_than_that_is_over(stage: Scene) -> None:
    first = await stage.greet()
    for _ in range(2):
        await stage.greet()
    await stage.device.say({"type": "listen", "session_id": first, "state": "start", "mode": "auto"})
    assert (await stage.device.hear_type("goodbye"))["session_id"] == first
