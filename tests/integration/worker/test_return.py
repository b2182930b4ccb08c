"""M10 of the device's contract: a device that lost its connection and comes back."""

from fleet.wire import mail
from tests.integration.worker.scene import Scene, says


async def test_the_edge_of_a_live_session_hears_that_its_device_came_back(stage: Scene) -> None:
    session = await stage.greet()
    await stage.reconnect()
    returned = await stage.edge.next(mail.DeviceReturned)
    assert (returned.device, returned.session) == (stage.device.mac, session)
    stage.llm.script = [says("Yes.")]
    await stage.utter(session, "still there?")
    await stage.edge.next(mail.SpeechBegun)
    assert await stage.spoken() == ["Yes."]


async def test_a_device_without_a_session_is_told_to_stop(stage: Scene) -> None:
    session = await stage.greet()
    await stage.device.say({"type": "goodbye", "session_id": session})
    await stage.edge.next(mail.SessionClosed)
    await stage.reconnect()
    stop = await stage.device.hear_type("tts")
    assert (stop["state"], stop["session_id"]) == ("stop", "")
