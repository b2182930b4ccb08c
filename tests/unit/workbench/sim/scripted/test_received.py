import asyncio

import pytest

from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.scripted import received
from fleet.workbench.sim.scripted.received import ReceivedMessages


async def test_a_message_that_waits_already_is_found_at_once() -> None:
    box = ReceivedMessages()
    box.add("down", b'{"type":"tts","state":"start"}')
    stop = box.add("down", b'{"TYPE":"tts","state":"stop","session_id":"s1"}')
    assert await box.expect("tts", "stop", seconds=0) is stop
    assert (stop.kind, stop.state, stop.session, stop["STATE"]) == ("tts", "stop", "s1", "stop")
    assert len(box.find("tts")) == 2


async def test_a_message_that_comes_later_is_waited_for() -> None:
    box = ReceivedMessages()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        waiting = group.create_task(box.expect("goodbye", seconds=240, where=lambda one: one.session == "s2"))
        await asyncio.sleep(0)
        box.add("down", b'{"type":"goodbye","session_id":"s1"}')
        await asyncio.sleep(0)
        assert not waiting.done()
        box.add("down", b'{"type":"goodbye","session_id":"s2"}')
    assert waiting.result().session == "s2"


async def test_a_message_that_does_not_come_is_a_failure_that_names_it() -> None:
    box = ReceivedMessages()
    old = box.add("down", b'{"type":"tts","state":"stop"}')
    with pytest.raises(Failed, match=r"no `tts stop` within 0\.01 s"):
        await box.expect("tts", "stop", seconds=0.01, after=old.at)
    with pytest.raises(Failed, match="no `hello` within"):
        await box.expect("hello", seconds=0.01)


async def test_a_message_that_must_not_come_is_a_failure_that_shows_it() -> None:
    box = ReceivedMessages()
    await box.expect_none("goodbye", seconds=0.01)
    box.add("down", b'{"type":"goodbye","session_id":"s1"}')
    with pytest.raises(Failed, match=r'unexpected `goodbye`: \{"type":"goodbye"'):
        await box.expect_none("goodbye", seconds=240)


async def test_what_is_no_message_is_kept_but_never_found() -> None:
    box = ReceivedMessages()
    assert box.add("down", b"\xff{").body == {}
    assert box.find("") == box.all
    assert "\ufffd{" in str(box.all[0])


async def test_a_flood_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received, "MOST", 2)
    box = ReceivedMessages()
    box.add("down", b"{}")
    box.add("down", b"{}")
    with pytest.raises(Failed, match="more than 2 messages"):
        box.add("down", b"{}")
