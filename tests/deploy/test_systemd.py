"""The unit for machines without containers: systemd understands it, and fleet understands what it is started with."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer import Exit
from typer.core import TyperGroup
from typer.main import get_command

from fleet.cli import app
from fleet.ground import runtime
from fleet.ground.settings import Settings
from tests.support.deployed_settings import unknown
from tests.support.documents import ROOT

UNIT = ROOT / "deploy" / "systemd" / "fleet@.service"
ROLES = ("worker", "edge", "api", "gateway", "front", "control", "up")
LEAVING_SECONDS = 7.0
"""What a role takes at most besides FLEET_DRAIN_SECONDS (docs/operating/upgrade.md)."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def read(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)


def started(role: str) -> list[str]:
    """Return the words that an instance is started with, as systemd puts them together."""
    variables = dict(word.split("=", 1) for line in read("Environment") for word in line.split())
    (command,) = read("ExecStart")
    words = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], command).replace("%i", role).split()
    assert "$" not in " ".join(words)
    return words


@pytest.mark.parametrize("role", ROLES)
def test_an_instance_runs_the_role_of_its_name(role: str) -> None:
    program, *words = started(role)
    assert program.endswith("/bin/fleet")
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    with command.make_context("fleet", list(words)) as context:
        name, chosen, left = command.resolve_command(context, [*context._protected_args, *context.args])
        assert name == role
        assert chosen is not None
        assert left == []
        with pytest.raises(Exit), chosen.make_context(role, ["--help"], parent=context):
            pass


def test_what_is_set_is_a_setting() -> None:
    assert unknown({word.split("=")[0] for line in read("Environment") for word in line.split()}) == set()


def test_a_role_is_given_longer_than_it_drains() -> None:
    (limit,) = read("TimeoutStopSec")
    assert float(limit) >= Settings.model_fields["drain_seconds"].get_default() + LEAVING_SECONDS


def test_wrong_settings_are_not_tried_again() -> None:
    assert read("RestartPreventExitStatus") == [str(runtime.EXIT_MISCONFIGURED)]


@needs_systemd
@pytest.mark.parametrize("instance", ["worker", "worker2", "edge"])
def test_systemd_understands_it(tmp_path: Path, instance: str) -> None:
    # Only the program is another one: systemd looks whether it is there.
    text = UNIT.read_text(encoding="utf-8").replace(started("worker")[0], "/bin/true")
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")
    path = str(tmp_path / f"fleet@{instance}.service")
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
def test_it_is_hardened(tmp_path: Path) -> None:
    shutil.copy(UNIT, tmp_path)
    command = [
        "systemd-analyze",
        "security",
        "--offline=true",
        "--threshold=20",
        "--no-pager",
        str(tmp_path / UNIT.name),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout
