import io
import json

import pytest
from rich.console import Console

from fleet.core.finding import exit_code, ok, problem, skipped, warning, wrong
from fleet.operations.doctor.report import show, show_json

FOUND = [
    ok("a.b", "fine"),
    skipped("c.d", "not here"),
    warning("e.f", "may fail", "Set [this]"),
    problem("g.h", "bad", "Mend"),
]


def test_scripts_get_an_exit_code_that_says_how_bad_it_is() -> None:
    assert exit_code([]) == exit_code(FOUND[:3]) == 0
    assert exit_code(FOUND) == 1
    assert exit_code([*FOUND, wrong("i.j", "no", "Correct it")]) == 2


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_json(FOUND)
    told = json.loads(capsys.readouterr().out)
    assert told["exit"] == 1
    assert told["findings"][3] == {"check": "g.h", "verdict": "problem", "message": "bad", "advice": "Mend", "case": ""}


def test_people_get_what_is_wrong_and_what_to_do() -> None:
    stream = io.StringIO()
    show(FOUND, Console(file=stream, width=100))
    text = stream.getvalue()
    assert "PROBLEM g.h" in text and "Mend." in text and "Set [this]." in text
    assert "1 problem, 1 warning. docs" in text
    assert text.index("c.d") < text.index("Mend")


def test_what_a_device_wrote_is_told_as_it_wrote_it() -> None:
    stream = io.StringIO()
    show([problem("device.bootstrap", "board [/x]\x1b[2J\u202e", "Look")], Console(file=stream, width=100))
    assert stream.getvalue().count(r"board [/x]\x1b[2J\u202e") == 2
    assert "\x1b" not in stream.getvalue()
