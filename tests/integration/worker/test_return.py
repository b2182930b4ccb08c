"""M10 of the device's contract: a device that lost its connection and comes back."""

from fleet.wire import mail
from tests.integration.worker.scene import HELLO, Scene, says


async def test_the_edge_of_a_live_session_hears_that_its_device_came_back(stage: Scene) -> None:
    session = await stage.greet()
    await stage.reconnect()
    returned = await stage.edge.next(mail.DeviceReturned)
    assert (returned.device, returned.session) == (stage.device.mac, session)
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "still there?")
    await stage.edge.next(mail.SpeechBegun)
    assert await stage.spoken() == ["Yes."]


async def test_a_device_without_a_session_is_told_that_the_last_one_is_over(stage: Scene) -> None:
    session = await stage.greet()
    await stage.device.say({"type": "goodbye", "session_id": session})
    await stage.edge.next(mail.SessionClosed)
    await stage.reconnect()
    stop = await stage.device.hear_type("tts")
    assert (stop["state"], stop["session_id"]) == ("stop", session)
    assert (await stage.device.hear_type("goodbye"))["session_id"] == session


async def test_a_device_that_never_had_a_session_is_only_told_to_stop(stage: Scene) -> None:
    await stage.reconnect()
    stop = await stage.device.hear_type("tts")
    assert (stop["state"], stop["session_id"]) == ("stop", "")


async def test_a_device_that_asked_twice_may_listen_under_its_first_answer(stage: Scene) -> None:
    for _ in range(2):
        await stage.device.say(HELLO)
    first, second = [(await stage.device.hear_type("hello"))["session_id"] for _ in range(2)]
    assert [(await stage.edge.next(mail.SessionOpened)).session for _ in range(2)] == [first, second]
    await stage.device.say({"type": "listen", "session_id": first, "state": "start", "mode": "auto"})
    assert (await stage.edge.next(mail.ListeningStarted)).session == second


async def test_a_session_older_than_that_is_over(stage: Scene) -> None:
    first = await stage.greet()
    for _ in range(2):
        await stage.greet()
    await stage.device.say({"type": "listen", "session_id": first, "state": "start", "mode": "auto"})
    assert (await stage.device.hear_type("goodbye"))["session_id"] == first
