"""`scripts/bench` shows its commands, and says what is wrong with a file before it measures anything."""

from pathlib import Path

import pytest
from typer.testing import CliRunner


def bench(*words: str) -> tuple[int, str]:
    # In this process: one of its own takes two seconds to import all benchmarks. Not where every process reads it.
    from tests.benchmarks.__main__ import app

    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


def test_benchmarks_of_roles_and_of_servers_are_commands_of_one_program() -> None:
    code, printed = bench("--help")
    assert code == 0
    for command in ("hello", "udp", "all", "peer", "plots"):
        assert f" {command} " in printed, command


@pytest.mark.parametrize("words", [("all", "--compare"), ("plots",)], ids=["compare", "plots"])
def test_a_missing_file_is_a_wrong_argument(words: tuple[str, ...], tmp_path: Path) -> None:
    code, printed = bench(*words, str(tmp_path / "missing.json"))
    assert code == 2
    assert "Invalid value" in printed
