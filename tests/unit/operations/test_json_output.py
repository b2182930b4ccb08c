"""What a command did is a text for people, and JSON of one shape for programs."""

import json
from datetime import UTC, datetime

import pytest

from fleet.operations.json_output import print_json, print_result
from fleet.wire.control.tokens import Token

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_programs_get_models_and_fields_in_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    token = Token(id=1, name="anna", scopes=["devices:read"], created=MADE)
    print_result("things", [token, {"name": "\x1b[2J", "at": MADE, "of": None}], "never", as_json=True)
    printed = capsys.readouterr().out
    assert printed.isascii() and "\x1b" not in printed
    model, fields = json.loads(printed)["things"]
    assert (model["name"], model["created"], model["expires"]) == ("anna", "2026-01-02T03:04:05.000Z", None)
    assert fields == {"name": "\x1b[2J", "at": "2026-01-02T03:04:05Z", "of": None}


def test_people_get_the_text_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_result("things", [{"name": "anna"}], "anna is gone", as_json=False)
    assert capsys.readouterr().out == "anna is gone\n"


def test_more_fields_stand_beside_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_json("things", [], exit=1)
    assert json.loads(capsys.readouterr().out) == {"exit": 1, "things": []}
