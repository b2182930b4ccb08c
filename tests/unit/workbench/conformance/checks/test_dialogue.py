import json

import pytest

from fleet.workbench.conformance.checks.dialogue import judge_order
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.scripted.received import ReceivedMessage


def messages(*names: str) -> list[ReceivedMessage]:
    bodies = [{"type": name} if name in ("stt", "llm", "mcp") else {"type": "tts", "state": name} for name in names]
    return [ReceivedMessage(at, body, json.dumps(body).encode(), "t") for at, body in enumerate(bodies)]


@pytest.mark.parametrize(
    "names",
    [
        ("stt", "llm", "start", "sentence_start", "stop"),
        ("stt", "start", "sentence_start", "sentence_end", "sentence_start", "sentence_end", "stop"),
        ("stop", "mcp", "stt", "start", "sentence_start", "stop"),
    ],
)
def test_a_framed_answer_passes(names: tuple[str, ...]) -> None:
    assert "sentence_start" in judge_order(messages(*names))


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("stt", "start", "stop"),
        ("start", "stt", "sentence_start", "stop"),
        ("stt", "sentence_start", "start", "stop"),
        ("stt", "start", "sentence_start"),
        ("stt", "start", "sentence_start", "stop", "stop"),
        ("stt", "start", "sentence_start", "stop", "sentence_start"),
        ("start", "sentence_start", "stop"),
    ],
)
def test_any_other_order_fails(names: tuple[str, ...]) -> None:
    with pytest.raises(Failed, match="the order was"):
        judge_order(messages(*names))
