"""`fleet tokens` as commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, OperatorTokens
from tests.support.command_line import CommandLine, Done, command_line


@pytest.fixture(scope="module")
def kept() -> Iterator[CommandLine]:
    with command_line() as one:
        yield one


@pytest.mark.requirement("REG-22")
def test_a_token_is_made_listed_and_revoked(kept: CommandLine, tmp_path: Path) -> None:
    def fleet(file: Path, *words: str) -> Done:
        return kept.run("tokens", *words, FLEET_OPERATOR_TOKENS_FILE=str(file))

    file = tmp_path / "tokens"
    made = fleet(file, "new", "--scope", DEVICES_INPUT, "anna")
    assert made.returncode == 0, made.stderr
    found = OperatorTokens(file).find(made.stdout.strip())
    assert found
    assert found.name == "anna"
    assert made.stdout.strip() not in file.read_text()
    assert fleet(file, "list").stdout.split() == ["anna", DEVICES_INPUT]
    again = fleet(file, "new", "--scope", DEVICES_INPUT, "anna")
    assert again.returncode != 0
    assert again.stdout == ""
    assert "already" in again.stderr
    assert fleet(file, "new", "--scope", "everything").returncode != 0
    assert fleet(file, "revoke", "anna").stdout.strip() == "anna is revoked"
    assert fleet(file, "revoke", "anna").returncode == 1
    assert OperatorTokens(file).read() == ()
