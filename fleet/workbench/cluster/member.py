"""One process of a role, from its start to its end."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.cluster.plan import Role
from fleet.workbench.local_servers.log_line import parse_log
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import run_program

READY_SECONDS = 90.0
_LOOK_SECONDS = 0.05
_ANSWER_SECONDS = 3.0
_SHOWN_LINES = 12
_IN_HASTE = frozenset({"drain limit exceeded, some work was not handed over", "left before everything was answered"})
"""The log line of a role that dropped the turns that it had."""


@dataclass(frozen=True, slots=True)
class Station:
    """Where a process is: `metrics` and `port` are TCP (0 for none), `udp` an edge's."""

    metrics: int
    port: int = 0
    udp: int = 0


class Member:
    """One process; `run` starts it.

    Args:
        role: What it is.
        name: Its own, as `worker-2`; its successor has the same.
        command: Program and arguments.
        log: File for what it writes.
        station: Its ports.
        patience: Seconds that it has to end in order.
    """

    def __init__(
        self, role: Role, name: str, command: Sequence[str], log: Path, station: Station, patience: float
    ) -> None:
        self.role, self.name, self.log, self.station = role, name, log, station
        self.pid = 0
        self.code: int | None = None
        self.death = ""
        """Why it ended without an order."""
        self.hasty = False
        """Whether it dropped work that it should have handed over."""
        self._command, self._patience = list(command), patience
        self._leaving, self._gone = asyncio.Event(), asyncio.Event()

    @property
    def serves(self) -> bool:
        """Whether it runs and is not being stopped."""
        return not self._leaving.is_set() and not self._gone.is_set()

    async def run(self) -> None:
        """Run it until it is stopped, or ends by itself."""
        try:
            async with run_program(self.name, self._command, self.log, self._read, self._patience) as program:
                self.pid = program.pid
                await self._leaving.wait()
            self.code = program.code
        except* Unavailable as group:
            self.death = str(group.exceptions[0])
        finally:
            self._gone.set()

    async def get_ready(self) -> None:
        """Wait until it says that it is ready.

        Raises:
            Unavailable: It ended, or is not ready in time.
        """
        reason = "no answer"
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                while not self._gone.is_set():
                    reason = await _probe(self.station.metrics)
                    if not reason:
                        return
                    await asyncio.sleep(_LOOK_SECONDS)
        if self._gone.is_set():
            raise Unavailable(self.death or f"{self.name} ended")
        raise Unavailable(f"{self.name} was not ready within {READY_SECONDS:g} s: {reason} (log: {self.log})")

    async def leave(self) -> None:
        """Ask it to end (SIGTERM), and return when it has."""
        self._leaving.set()
        await self._gone.wait()

    async def end(self) -> None:
        """Return when it has ended."""
        await self._gone.wait()

    def last_words(self) -> str:
        """Return the end of its log."""
        with suppress(OSError):
            return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:])
        return ""

    def _read(self, raw: str) -> None:
        line = parse_log(raw)
        self.hasty = self.hasty or (line is not None and line.message in _IN_HASTE)


async def _probe(port: int) -> str:
    """Return why a process is not ready, nothing when it is."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nhost: cluster\r\n\r\n")
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return "no answer"
    if b" 200 " in head.partition(b"\r\n")[0]:
        return ""
    with suppress(ValueError, AttributeError):
        return str(json.loads(body).get("reason", "not ready"))
    return "not ready"
