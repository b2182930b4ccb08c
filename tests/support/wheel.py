"""The wheel of this checkout, built as `scripts/release` builds it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 500


def build_wheel(folder: Path) -> Path:
    """Return the wheel, built into a folder; nothing is loaded for it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=LIMIT_SECONDS)
    [wheel] = folder.glob("*.whl")
    return wheel
