import json

import pytest

from fleet.workbench.conformance.steering.records import Asked
from fleet.workbench.conformance.tool_use import (
    is_failure,
    is_offered,
    number_of,
    offered,
    page,
    results_of,
    saying,
    tool,
)


def asked(*messages: dict[str, object], tools: tuple[str, ...] = ()) -> Asked:
    named = tuple({"type": "function", "function": {"name": name}} for name in tools)
    return Asked(0.0, messages, named)  # type: ignore[arg-type]


def test_a_tool_is_offered_under_whatever_name_a_server_gives_it() -> None:
    for name in ("self.stage.light", "self_stage_light", "stage_light", "device__stage-Light"):
        assert is_offered("stage.light", asked(tools=("other", name)))
    assert not is_offered("stage.light", asked(tools=("stage_lightning", "light")))
    assert offered(asked(tools=("one", "two"))) == ["one", "two"]


def test_the_outcomes_of_the_last_calls_are_read_in_order() -> None:
    calls = {"role": "assistant", "tool_calls": []}
    request = asked(
        {"role": "user", "content": "hello"},
        calls,
        {"role": "tool", "content": "of an earlier turn"},
        {"role": "user", "content": "again"},
        calls,
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
        {"role": "tool", "content": None},
    )
    assert results_of(request) == ["one", "two three", ""]
    assert results_of(asked({"role": "user", "content": "hello"})) == []


@pytest.mark.parametrize("text", ["error: stuck", "It failed", "the call timed out", "timeout", "Unknown result"])
def test_failures_are_told_from_their_words(text: str) -> None:
    assert is_failure(text)


@pytest.mark.parametrize("text", ["done; it confirms nothing", "true", "restarting", "terrorist"])
def test_what_is_no_failure_is_not_taken_for_one(text: str) -> None:
    assert not is_failure(text)


def test_pages_and_results_answer_the_request_that_they_are_for() -> None:
    request = {"jsonrpc": "2.0", "id": 41, "method": "tools/list"}
    assert number_of({"id": "41"}) == 0
    listed = json.loads(page(request, tool("self.stage.light"), cursor="x"))
    assert listed["id"] == 41
    assert [one["name"] for one in listed["result"]["tools"]] == ["self.stage.light"]
    assert listed["result"]["nextCursor"] == "x"
    assert "nextCursor" not in json.loads(page(request))["result"]
    answer = json.loads(str(saying("hi")(request)))
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (41, "hi")
