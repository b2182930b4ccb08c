"""A terminal of somebody who follows a guide: what is typed, what is shown, and Ctrl-C."""

import os
import pty
import re
import select
import subprocess
import time
from typing import Self

import pytest

LIMIT_SECONDS = 900.0
_PROMPT = "\x1e"
_PROMPTED = re.compile(rf"{_PROMPT}(\d+){_PROMPT}$")
_QUESTION = re.compile(r"\[Y/n\] $")
_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")


class Terminal:
    """A shell in a container.

    Args:
        container: Its name.
        user: Who types.
    """

    def __init__(self, container: str, user: str = "root") -> None:
        here, there = pty.openpty()
        command = ["docker", "exec", "-it", "-u", user, container, "bash", "--norc", "--noprofile", "--noediting"]
        self._process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there)
        os.close(there)
        self._screen = here
        self._shown = ""
        # Without an echo, everything that is shown is an answer. The prompt says how the last command ended.
        self.type("stty -echo; cd; PS2=; PS1=$'\\x1e'\\$?$'\\x1e'")
        self._read_until(_PROMPTED, 20)

    def run(self, typed: str, seconds: float = LIMIT_SECONDS) -> str:
        """Enter a command, say yes where it asks, and return what it showed; fail the test when the command does."""
        self.type(typed)
        return self.shown(seconds)

    def shown(self, seconds: float = LIMIT_SECONDS) -> str:
        """Wait until the command that was typed last has ended; return what it showed."""
        self._read_until(_PROMPTED, seconds)
        shown, code, _ = re.split(_PROMPTED, self._shown)
        if code != "0":
            pytest.fail(f"exit code {code}\n{shown[-6000:]}", pytrace=False)
        return shown

    def type(self, typed: str) -> None:
        self._shown = ""
        os.write(self._screen, f"{typed}\n".encode())

    def wait_for(self, words: str, seconds: float = LIMIT_SECONDS) -> None:
        """Return when what was typed last has shown these words."""
        self._read_until(re.compile(re.escape(words)), seconds)

    def interrupt(self) -> None:
        """Press Ctrl-C, and wait until the command has ended."""
        os.write(self._screen, b"\x03")
        self._read_until(_PROMPTED, 60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._screen)
        self._process.wait(30)

    def _read_until(self, wanted: re.Pattern[str], seconds: float) -> None:
        give_up = time.monotonic() + seconds
        while not wanted.search(self._shown):
            if not select.select([self._screen], [], [], max(0.0, give_up - time.monotonic()))[0]:
                pytest.fail(f"waited too long for {wanted.pattern!r}:\n{self._shown[-6000:]}", pytrace=False)
            read = os.read(self._screen, 65536).decode(errors="replace")
            self._shown += _COLOURS.sub("", read).replace("\r", "")
            if _QUESTION.search(self._shown):
                os.write(self._screen, b"Y\n")
                self._shown += "\n"
