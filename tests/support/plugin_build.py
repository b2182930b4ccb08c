"""Builds the Mosquitto plugin for the tests."""

import fcntl
import functools
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "mosquitto"
BUILD = SOURCES / "build"
_HEADER = Path("/usr/include/mosquitto_plugin.h")
_LIMIT_SECONDS = 500


def run_make(*targets: str) -> str:
    """Run make in the plugin's directory and return what it printed; fail the test when make fails.

    Under a file lock, as parallel test processes share the build directory.
    """
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "-C", str(SOURCES), f"BUILD={BUILD}", *targets],
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    if done.returncode:
        missing = "" if _HEADER.exists() else "install it with apt-get install gcc make mosquitto-dev libssl-dev\n"
        pytest.fail(f"cannot build the Mosquitto plugin: {missing}{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


@functools.cache
def build_plugin() -> Path:
    """Return the path of the plugin, built if a source is newer."""
    run_make("all")
    return BUILD / "fleet_plugin.so"
