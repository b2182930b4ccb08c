"""`fleet commands` and its reference."""

from pathlib import Path

import pytest
from typer.main import get_command

from fleet.cli import add_operator_commands, add_workbench_commands, app
from fleet.operations.commands_reference import Command, find_commands, write_commands
from tests.support.command_line import command_line

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
WITHOUT_JSON = {
    **dict.fromkeys(("up", "worker", "edge", "api", "gateway", "front", "control"), "a role: it writes a log"),
    "demo-llm": "a server: it writes a log",
    "sim": "a device in the terminal; --report writes JSON",
}
"""Commands that print nothing for programs, with the reason."""


@pytest.fixture(scope="module")
def found() -> dict[str, Command]:
    if not any(group.name == "devices" for group in app.registered_groups):
        add_operator_commands()
        add_workbench_commands()
    return {one.path: one for one in find_commands(get_command(app))}


def test_the_reference_is_what_the_command_prints(found: dict[str, Command]) -> None:
    assert REFERENCE.read_text(encoding="utf-8") == write_commands(tuple(found.values())), (
        "fleet commands --format markdown > docs/reference/commands.md"
    )


def test_commands_below_commands_are_found(found: dict[str, Command]) -> None:
    assert {"fleet up", "fleet settings", "fleet sim", "fleet devices bind", "fleet keys rotate"} <= set(found)
    assert "fleet devices" not in found


def test_everything_is_explained(found: dict[str, Command]) -> None:
    for command in found.values():
        assert command.description, command.path
        for name, text in command.options:
            assert text.partition("[default")[0].strip(), f"{command.path} {name}"
            assert not name.startswith("-") or "list[" not in name, f"{command.path} {name}: set a metavar"


def test_every_command_has_json_but_roles_and_servers(found: dict[str, Command]) -> None:
    without = {path.removeprefix("fleet ") for path, one in found.items() if not has_json(one)}
    assert without == set(WITHOUT_JSON)


def has_json(command: Command) -> bool:
    return any(name.split()[0] == "--json" for name, _ in command.options)


def test_an_option_is_listed_with_its_form_default_and_edges(found: dict[str, Command]) -> None:
    options = dict(found["fleet devices debug"].options)
    assert options["--minutes <float range>"] == "Duration in minutes; 0 ends it now. [default: 10.0; 0<=x<=1440]"
    assert options["mac <str>"].endswith("[required]")


def test_lists_stand_below_the_options(found: dict[str, Command]) -> None:
    notes = found["fleet tokens new"].notes
    assert notes[0] == "Scopes:" and "- `audit:read`: Read the audit log." in notes
    command = Command("fleet x", "Do x.", (), ("First:", "- one", f"- {'two ' * 40}", "Last."))
    _, _, below = write_commands((command,)).partition("Do x.\n\n")
    two = " two" * 29
    assert below.splitlines() == ["First:", "", "- one", f"-{two}", f" {' two' * 11}", "", "Last."]


def test_the_command_shows_a_line_for_each_option() -> None:
    with command_line() as fleet:
        done = fleet.run("commands")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "fleet devices bind" in lines
    assert any(line.startswith("      --json") for line in lines)
