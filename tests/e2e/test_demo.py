"""The demo as its user runs it: a server in a process of its own, a simulated device, recorded speech."""

import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 540


@pytest.mark.conversation
def test_the_demo_succeeds_in_english_and_leaves_its_evidence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fleet.workbench.demo", "--en", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✘" not in done.stdout
    assert done.stdout.count("✔") == 6
    assert {path.name for path in tmp_path.glob("*.wav")} == {"en-time.wav", "en-volume.wav", "en-battery.wav"}
    assert '"fleet is up"' in (tmp_path / "server.log").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    command = [sys.executable, "-m", "fleet.workbench.demo", "--out", str(blocked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert f"cannot write {blocked}" in done.stderr
