from collections.abc import Iterator

import pytest

from fleet.ground.tracing import spans, turns
from fleet.ground.tracing.tools import tool_span
from tests.support.noted_spans import NotedTracer


@pytest.fixture
def tracer() -> Iterator[NotedTracer]:
    tracer = NotedTracer()
    spans.enable(tracer, pii=False)
    yield tracer
    spans.disable()
    assert tracer.closed


def test_while_traces_are_off_nothing_is_made() -> None:
    with spans.span("work", {"a": 1}) as span:
        assert span is spans.OFF
        assert spans.current().traceparent == ""
    with turns.utterance_span({}, 0.5):
        assert turns.adopt("t") == ""
    assert turns.find("t") is spans.OFF


def test_a_span_within_another_is_its_child(tracer: NotedTracer) -> None:
    with spans.span("outer") as outer, spans.span("inner"):
        assert spans.current() is not outer
    assert [(span.name, span.parent) for span in tracer.made] == [("outer", ""), ("inner", outer.traceparent)]
    assert all(span.ended for span in tracer.made)


def test_the_span_of_another_process_can_be_its_parent(tracer: NotedTracer) -> None:
    with spans.span("outer"), spans.span("answer", {}, "00-1-2-01"):
        pass
    assert tracer.made[1].parent == "00-1-2-01"


def test_a_turn_that_nobody_adopts_ends_with_its_recognition(tracer: NotedTracer) -> None:
    with turns.utterance_span({}, 0.5):
        pass
    assert tracer.made[0].ended


def test_an_adopted_turn_ends_when_its_answer_is_over(tracer: NotedTracer) -> None:
    with turns.utterance_span({}, 0.5):
        traceparent = turns.adopt("t")
    assert traceparent and not tracer.made[0].ended
    assert turns.find("t").traceparent == traceparent
    turns.end("t")
    turns.end("t")
    assert tracer.made[0].ended == 1
    assert turns.find("t") is spans.OFF


def test_a_turn_of_another_process_is_only_joined(tracer: NotedTracer) -> None:
    turns.join("t", "00-1-2-01")
    assert turns.find("t").traceparent == "00-1-2-01"
    turns.end("t")
    assert tracer.made == []


def test_turns_whose_end_is_never_told_are_bounded(tracer: NotedTracer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST", 2)
    for name in ("a", "b", "c"):
        with turns.utterance_span({}, 0.0):
            turns.adopt(name)
    assert [span.ended for span in tracer.made] == [1, 0, 0]
    for name in ("b", "c"):
        turns.end(name)


def test_arguments_and_results_are_private(tracer: NotedTracer) -> None:
    with tool_span("lamp", "call_1", {"on": True}) as note:
        note("error", "no lamp")
    [span] = tracer.made
    assert span.name == "execute_tool lamp"
    assert span.attributes["gen_ai.tool.name"] == "lamp"
    assert span.attributes["gen_ai.tool.call.id"] == "call_1"
    assert span.failure == "error"
    assert "gen_ai.tool.call.arguments" not in span.attributes
    spans.enable(tracer, pii=True)
    with tool_span("lamp", "", {"on": True}) as note:
        note("ok", "done")
    assert tracer.made[1].attributes["gen_ai.tool.call.arguments"] == '{"on": true}'
    assert tracer.made[1].attributes["gen_ai.tool.call.result"] == "done"
