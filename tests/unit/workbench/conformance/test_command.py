import pytest
from typer.testing import CliRunner

from fleet.cli import add_workbench_commands, app

add_workbench_commands()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "H1,Q7"), "no check or group Q7"),
        (("--profile", "P99"), "P99"),
        (("--refused", "nobody"), "--refused: nobody is no MAC"),
    ],
)
def test_what_the_command_line_has_wrong_is_told_before_anything_runs(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, ["conformance", "--ota", "http://127.0.0.1:1/", *arguments])
    assert result.exit_code == 2
    assert said in result.output


def test_a_server_that_is_away_fails_and_is_no_success() -> None:
    result = CliRunner().invoke(
        app, ["conformance", "--ota", "http://127.0.0.1:1/", "--only", "H1,H3", "--profile", "P1"]
    )
    assert result.exit_code == 1
    assert "bootstrap at http://127.0.0.1:1/ failed" in result.output
    assert "0 passed · 1 failed · 1 skipped" in result.output
