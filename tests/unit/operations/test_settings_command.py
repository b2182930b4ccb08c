"""`fleet settings` and its reference."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from fleet.ground.settings import Settings, variable
from fleet.operations import settings_command
from fleet.operations.settings_reference import LONGEST_CELL, divided, write_reference
from tests.support.command_line import CommandLine, command_line

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


def test_the_reference_is_what_the_command_prints() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == write_reference(), (
        "fleet settings --format markdown > docs/reference/settings.md"
    )


def test_the_reference_has_a_row_of_five_cells_for_every_setting() -> None:
    rows = [line for line in write_reference().partition("## The document's")[0].splitlines() if line[:3] == "| `"]
    assert sorted(re.findall(r"`(\w+)`", row)[0] for row in rows) == sorted(map(variable, Settings.model_fields))
    assert {row.count("|") for row in rows} == {6}


def test_a_long_meaning_is_divided_between_two_sentences_and_nothing_of_it_is_lost() -> None:
    short, sentence = "Port of the api. Not 8883.", "A sentence that has about sixty characters, more or less so."
    assert divided(short) == (short, "")
    shown, rest = divided(" ".join([sentence] * 5))
    assert (shown, rest) == (" ".join([sentence] * 3), " ".join([sentence] * 2))
    assert len(shown) <= LONGEST_CELL < len(f"{shown} {sentence}")
    endless = "word " * 50 + "end."
    assert divided(f"{endless} More.") == (endless, "More.")


def test_the_command_prints_the_reference_whatever_is_set(fleet: CommandLine) -> None:
    done = fleet.run("settings", "--format", "markdown", FLEET_SHARDS="3")
    assert (done.returncode, done.stdout) == (0, write_reference())


def test_what_is_no_terminal_gets_a_line_for_each_setting(fleet: CommandLine) -> None:
    done = fleet.run("settings", COLUMNS="40", FLEET_SHARDS="32", LLM_API_KEY="sk-1", FLEET_REDIS_URL="redis://:pw@h/0")
    lines = done.stdout.splitlines()
    named = [line.split(" = ")[0] for line in lines if re.match(r"\w+ = ", line)]
    assert sorted(named) == sorted(map(variable, Settings.model_fields))
    assert "FLEET_SHARDS = 32  (default 16)" in lines
    assert "FLEET_MQTT_URL = not set" in lines
    assert "LLM_API_KEY = ********  (default not set)" in lines
    assert "FLEET_REDIS_URL = redis://********@h/0  (default not set)" in lines
    assert "sk-1" not in done.stdout
    assert "\x1b" not in done.stdout


def test_settings_are_found_by_words_role_and_change(fleet: CommandLine) -> None:
    def names(*words: str, **env: str) -> list[str]:
        return re.findall(r"^(\w+) = ", fleet.run("settings", *words, **env).stdout, re.MULTILINE)

    assert names("lease") == ["FLEET_LEASE_SECONDS"]
    assert names("udp", "PUBLIC", "--role", "edge") == ["FLEET_UDP_PUBLIC", "FLEET_NODE_NAME"]
    assert "FLEET_UDP_PORT" not in names("--role", "api")
    assert "FLEET_DRAIN_SECONDS" in names("--role", "worker")
    assert "FLEET_DRAIN_SECONDS" not in names("--role", "up")
    assert "FLEET_SHARDS" in names("--changed", FLEET_SHARDS="32")
    assert "FLEET_KEEPALIVE" not in names("--changed", FLEET_SHARDS="32")


@pytest.mark.parametrize(
    ("words", "env", "code", "error"),
    [
        (["no-such-word"], {}, 1, "fleet: no such setting\n"),
        ([], {"FLEET_SHARDS": "3"}, 2, "fleet: FLEET_SHARDS: '3' is wrong: must be a divisor of 256\n"),
    ],
)
def test_what_cannot_be_shown_is_reported_in_a_line(
    fleet: CommandLine, words: list[str], env: dict[str, str], code: int, error: str
) -> None:
    done = fleet.run("settings", *words, **env)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", error)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_terminal_gets_lines_that_fit_and_whole_names(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(width=width, force_terminal=True, no_color=True, highlight=False)
    monkeypatch.setattr(settings_command, "open_console", lambda: console)
    settings_command.settings()
    out = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    for name in Settings.model_fields:
        assert re.search(rf"^{variable(name)} = ", out, re.MULTILINE)
    wide = [line for line in out.splitlines() if len(line) > min(width, 110) and line.startswith("    ")]
    # What has no place for a break, such as an address, is left whole.
    assert [line for line in wide if len(line.split()) > 1] == []
