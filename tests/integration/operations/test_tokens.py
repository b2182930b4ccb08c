"""`fleet tokens` as commands of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, OperatorTokens


def fleet(file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    return subprocess.run(
        [sys.executable, "-m", "fleet", "tokens", *words],
        env=kept | {"FLEET_OPERATOR_TOKENS_FILE": str(file)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.requirement("REG-22")
def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
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
