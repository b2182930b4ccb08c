import json

import pytest

from fleet.workbench.demo.timeline import Actor, Row, row_of_log, row_of_step
from fleet.workbench.local_servers.log_line import LogLine, parse_log
from fleet.workbench.sim.records.journal import Step


def line(message: str, level: str = "info", **fields: object) -> LogLine:
    parsed = parse_log(json.dumps({"level": level, "message": message, **fields}))
    assert parsed is not None
    return parsed


@pytest.mark.parametrize("raw", ["", "a library's words", "[1]", '"x"', "{", '{"level":"info"}', '{"message":7}'])
def test_what_is_no_log_line_is_none(raw: str) -> None:
    assert parse_log(raw) is None


def test_recognition_is_shown_with_language_and_time() -> None:
    found = row_of_log(line("utterance recognised", asr_seconds=0.412, language="en", pii={"text": "Hello?"}))
    assert found == Row(Actor.SERVER, "heard “Hello?”", "en, 412 ms")


def test_a_tool_call_is_shown_with_arguments_and_result_in_one_line() -> None:
    private = {"arguments": {"volume": 30, "now": True}, "result": "done\n" * 50}
    found = row_of_log(line("tool called", tool="self.set", outcome="ok", seconds=0.05, pii=private))
    assert found is not None
    assert found.text.startswith("self.set(volume=30, now=True) → ok: done done")
    assert "\n" not in found.text and found.text.endswith("…")
    assert found.note == "50 ms"


def test_a_log_without_private_fields_is_no_problem() -> None:
    assert row_of_log(line("tool called", tool="self.set", outcome="ok", pii="?")) is not None
    assert row_of_log(line("utterance recognised")) is not None


def test_warnings_are_problems_and_keep_the_end_of_a_traceback() -> None:
    found = row_of_log(line("work crashed", "error", traceback="x" * 1000 + "ValueError: no"))
    assert found is not None
    assert found.actor is Actor.PROBLEM
    assert found.note.endswith("ValueError: no")


def test_what_nobody_misses_has_no_row() -> None:
    assert row_of_log(line("speech done")) is None
    assert row_of_step(Step(0.0, "state", {"state": "idle"})) is None


def test_steps_of_the_device_are_shown() -> None:
    assert row_of_step(Step(1.0, "sentence", {"text": "It is 7."})) == Row(Actor.SERVER, "“It is 7.”")
    broken = row_of_step(Step(1.0, "violation", {"rule": "sequence", "detail": "7 after 9"}))
    assert broken is not None
    assert broken.actor is Actor.PROBLEM
    assert "sequence" in broken.text
