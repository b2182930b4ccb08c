"""One process of a role."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.cluster.options import Role
from fleet.workbench.local_servers.log_line import parse_log
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import run_program

READY_SECONDS = 90.0
_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 3.0
_SHOWN_LINES = 12
_DROPPED_WORK = frozenset(
    {"drain limit exceeded, some work was not handed over", "drain limit exceeded, some requests were not answered"}
)
"""Log messages of roles that did not complete their work before they ended."""


@dataclass(frozen=True, slots=True)
class ProcessPorts:
    """Ports of a process: `metrics` and `port` are TCP, `udp` is the port of an edge; 0: none."""

    metrics: int
    port: int = 0
    udp: int = 0


class RoleProcess:
    """One process; `run` starts it.

    Args:
        role: Of the process.
        name: Such as `worker-2`; the process that replaces it has the same name.
        command: Program and arguments.
        log: File for its output.
        ports: On which it listens.
        stop_seconds: Seconds from SIGTERM until it is killed.
    """

    def __init__(
        self, role: Role, name: str, command: Sequence[str], log: Path, ports: ProcessPorts, stop_seconds: float
    ) -> None:
        self.role, self.name, self.log, self.ports = role, name, log, ports
        self.pid = 0
        self.code: int | None = None
        self.failure = ""
        """Why it ended without a request; empty if it did not."""
        self.dropped_work = False
        """Whether it dropped work that it should have handed over."""
        self._command, self._stop_seconds = list(command), stop_seconds
        self._stopping, self._ended = asyncio.Event(), asyncio.Event()

    @property
    def is_serving(self) -> bool:
        """Whether it has not ended and was not asked to stop."""
        return not self._stopping.is_set() and not self._ended.is_set()

    async def run(self) -> None:
        """Run it until `stop` is called or it ends by itself."""
        try:
            async with run_program(self.name, self._command, self.log, self._read, self._stop_seconds) as program:
                self.pid = program.pid
                await self._stopping.wait()
            self.code = program.code
        except* Unavailable as group:
            self.failure = str(group.exceptions[0])
        finally:
            self._ended.set()

    async def wait_until_ready(self) -> None:
        """Wait until its /readyz answers 200.

        Raises:
            Unavailable: It ended, or was not ready in time.
        """
        reason = "no answer"
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                while not self._ended.is_set():
                    reason = await _probe(self.ports.metrics)
                    if not reason:
                        return
                    await asyncio.sleep(_POLL_SECONDS)
        if self._ended.is_set():
            raise Unavailable(self.failure or f"{self.name} ended")
        raise Unavailable(f"{self.name} was not ready within {READY_SECONDS:g} s: {reason} (log: {self.log})")

    async def stop(self) -> None:
        """Ask it to end (SIGTERM), and return when it has ended."""
        self._stopping.set()
        await self._ended.wait()

    def log_tail(self) -> str:
        """Return the last lines of its log."""
        with suppress(OSError):
            return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:])
        return ""

    def _read(self, raw: str) -> None:
        line = parse_log(raw)
        self.dropped_work = self.dropped_work or (line is not None and line.message in _DROPPED_WORK)


async def _probe(port: int) -> str:
    """Return why a process is not ready; empty if it is."""
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
