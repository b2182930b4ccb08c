"""The rollout of the demo as its user runs it: a server in a process of its own, and simulated devices."""

import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 600


@pytest.mark.slow
def test_a_bad_image_is_halted_at_its_canaries_and_the_earlier_one_comes_back(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fleet.workbench.demo", "--fleet", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✘" not in done.stdout
    assert done.stdout.count("✔") == 5
    assert "halted (2 of 3 failed" in done.stdout
