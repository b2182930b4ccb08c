"""The command `fleet` in a process of its own that all tests share: to start one takes longer than most commands do."""

import atexit
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class CommandLine:
    """Runs one command after the other, with no setting but those that it is given."""

    def __init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.command_line"],
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **env: str) -> Done:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"words": words, "env": env}) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(240)
        self._process.stdout.close()


@contextmanager
def command_line() -> Iterator[CommandLine]:
    """Give the process of this process of tests; it ends with it."""
    yield _shared()


@functools.cache
def _shared() -> CommandLine:
    kept = CommandLine()
    atexit.register(kept.close)
    return kept


def _serve() -> None:
    from typer import testing

    from fleet.cli import add_operator_commands, app
    from tests.support.patient_fleet import be_patient

    be_patient()
    add_operator_commands()
    # Typer makes all commands anew before it runs one: four fifths of what a short one takes.
    testing._get_command = functools.cache(testing._get_command)
    runner = testing.CliRunner()
    for line in sys.stdin:
        asked = json.loads(line)
        for name in [name for name in os.environ if name.startswith("FLEET_")]:
            del os.environ[name]
        done = runner.invoke(app, asked["words"], env=asked["env"])
        told = {"returncode": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
