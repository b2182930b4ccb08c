"""Roles as processes of their own, the way production runs them."""

import json
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.forked import Forked
from tests.support.until import until

_PREFIXES = ("FLEET_", "LLM_", "ASR_", "TTS_")
STOP_SECONDS = 240.0
_QUIET = {"FLEET_LOG_FORMAT": "json", "FLEET_LOG_LEVEL": "debug", "FLEET_METRICS_PORT": "none"}


class RoleProcess:
    """One `fleet <role>`; its log lines are collected as they come.

    Args:
        role: The command.
        settings: Environment variables; nothing else of fleet's is taken from this process.
        log: File to which its log is also written.
    """

    def __init__(self, role: str, settings: Mapping[str, str], log: Path) -> None:
        self.role = role
        self.udp_port = int(settings.get("FLEET_UDP_PORT", "0"))
        self.tells = settings.get("FLEET_LOG_LEVEL", _QUIET["FLEET_LOG_LEVEL"]) == "debug"
        """Whether its log has all lines."""
        self.lines: list[dict[str, Any]] = []
        self._log = log
        outside = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIXES)}
        self._process = Forked([role], {**outside, **_QUIET, **settings})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, once it has ended."""
        return self._process.poll()

    def count(self, message: str) -> int:
        return sum(line["message"] == message for line in list(self.lines))

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Return the exit code, when it comes."""
        code = self._process.wait(seconds)
        self._reader.join(STOP_SECONDS)
        return code

    def discard(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)

    def _read(self) -> None:
        with self._log.open("a", encoding="utf-8") as log, self._process.written as lines:
            for text in lines:
                log.write(text)
                log.flush()
                try:
                    self.lines.append(json.loads(text))
                except ValueError:
                    self.lines.append({"message": text.rstrip(), "level": "raw"})


def started(role: RoleProcess, message: str, seconds: float = 240.0) -> None:
    """Return when a role has logged this; fail the test when it ends or takes too long."""

    def told() -> bool:
        assert role.code is None, f"{role.role} ended: {role.lines[-5:]}"
        return role.count(message) > 0

    until(told, seconds)
