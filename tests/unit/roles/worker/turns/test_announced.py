from fleet.core.rates import Rate
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.turns.announced import FixedAnswer, announce
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.edge_messages import SayEvent
from tests.support.worker_stage import MAC, WorkerStage


async def test_an_operators_text_is_spoken_as_it_is_and_the_model_is_not_asked(stage: WorkerStage) -> None:
    await stage.open("s1")
    said = SayEvent(device=MAC, session="s1", turn="t1", text="Dinner is ready. Come!", language="en")
    utterance = announce(said)
    calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)
    turn = WorkerTurn(stage.resources, calls, stage.shard, await stage.begin("t1", utterance.text), utterance)
    turn.ahead = FixedAnswer(said.text)
    await turn.run()
    assert stage.spoken() == ["Dinner is ready.", "Come!"]
    assert stage.llm.asked == []
    assert stage.sent() == [], "the request is not shown as the user's words"
    reply = await stage.resources.replies.read(MAC, "t1")
    assert reply is not None and (reply.state, reply.text) == ("answered", "Dinner is ready. Come!")
