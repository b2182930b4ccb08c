import json

import pytest

from fleet.workbench.demo_llm.reading import read
from fleet.workbench.demo_llm.results import ToolResult
from tests.support.demo_tools import STATUS


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("true", "ok"),
        ("", "ok"),
        ("Sunny, 20 degrees", "ok"),
        ('{"success": true}', "ok"),
        ('{"status": "strong"}', "ok"),
        ("false", "failed"),
        ("error: Value is below minimum allowed: 0", "failed"),
        ("error: unknown tool", "failed"),
        ("error: not done, the device is not connected", "failed"),
        ("Failed to capture photo", "failed"),
        ('{"success": false, "message": "no model"}', "failed"),
        ('{"error": {"message": "no"}}', "failed"),
        ('{"isError": true}', "failed"),
        ("失败：没有摄像头", "failed"),
        ("error: unknown whether it was done, the device did not answer in time", "unknown"),
        ("Timed out after 10 s; it may have happened", "unknown"),
        ('{"status": "unknown"}', "unknown"),
    ],
)
def test_outcomes_are_told_apart(text: str, outcome: str) -> None:
    assert ToolResult(text).outcome == outcome


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("error: Value is below minimum allowed: 0", "Value is below minimum allowed: 0"),
        ("error: not done, the device is not connected", "the device is not connected"),
        ("error: unknown whether it was done, no answer", "no answer"),
        ('{"success": false, "message": "no model"}', "no model"),
        ('{"error": {"message": "no"}}', "no"),
        ("false", ""),
    ],
)
def test_the_reason_is_the_tools_own(text: str, reason: str) -> None:
    assert ToolResult(text).reason == reason


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("what is the volume", [70]),
        ("how bright is the screen", [75]),
        ("what's the battery level", [80]),
        ("are you charging", [False]),
        ("电池还有多少电", [80]),
        ("电池", [80, False]),
        ("what's the wifi signal", ["strong"]),
        ("当前主题是什么", ["light"]),
        ("what is the humidity", []),
    ],
)
def test_the_asked_value_is_found(question: str, values: list[object]) -> None:
    assert [leaf.value for leaf in ToolResult(STATUS).find(read(question))] == values


def test_a_number_is_found_by_concept_at_any_depth() -> None:
    assert ToolResult(STATUS).number("volume") == 70
    assert ToolResult('{"a": [{"speaker": {"volume": 3}}]}').number("volume") == 3
    assert ToolResult("42").number("volume") == 42
    assert ToolResult(STATUS).number("humidity") is None
    assert ToolResult('{"volume": true}').number("volume") is None


def test_prose_is_found_inside_json() -> None:
    assert ToolResult('{"success": true, "response": "A cat."}').speech == "A cat."
    assert ToolResult('{"result": {"text": "A cat."}}').speech == "A cat."
    assert ToolResult("true").speech == ""


@pytest.mark.parametrize("text", ["[" * 100_000, json.dumps([1] * 5000), "null", '{"a": null}', "\ud800", "NaN"])
def test_odd_answers_are_survived(text: str) -> None:
    made = ToolResult(text)
    assert made.outcome in {"ok", "failed", "unknown"}
    assert len(made.leaves) <= 400
