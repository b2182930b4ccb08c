"""Runs server programs as child processes, which end with this process."""

import asyncio
import contextlib
import errno
import logging
import os
import random
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from fleet.ground.autogroup import share_autogroup
from fleet.ground.errors import Unavailable
from fleet.run.embedded import pdeathsig_exec

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
READY_SECONDS = 120.0
"""Longest start, also on a busy machine: Redis reads all its data before it is ready."""
_STOP_SECONDS = 10.0
_PROBE_SECONDS = 0.02
_PORTS = range(20_000, 32_000)  # below the ports that the kernel uses for outgoing connections
_TAIL = 2000


def script_command(module_file: str | None) -> list[str]:
    """Return the command that runs a file of this package in a new Python process.

    The command uses `-P` and not `-m`: neither a folder `fleet` in the working directory nor modules of this folder may
    hide the real modules.
    """
    return [sys.executable, "-P", str(module_file)]


def free_port() -> int:
    """Return a loopback port on which no process listens now, and that no other process of fleet has chosen.

    It stays this process's until its end: a server that starts soon, or again, finds it free.

    Raises:
        Unavailable: No free port was found.
    """
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        if _claim(port):
            return port
    raise Unavailable("found no free loopback port")


def _claim(port: int) -> bool:
    """Return whether no other process has claimed a port.

    The claim is an abstract socket: like the port it belongs to the network namespace, and it ends with this process.
    """
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(f"\0fleet-port-{port}")
        except OSError as error:
            return error.errno != errno.EADDRINUSE
        claim.detach()
    return True


class ChildProcess:
    """One server program; each start overwrites the file with its output.

    Args:
        name: For messages.
        command: Absolute path of the program, and arguments.
        output: File for its output.
    """

    def __init__(self, name: str, command: Sequence[str], output: Path) -> None:
        self._name = name
        self._command = list(command)
        self._output = output
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if self._process is not None and running else None

    async def start(
        self, ready: Callable[[], Awaitable[bool]], *, stdin: bytes = b"", pass_fds: Sequence[int] = ()
    ) -> None:
        """Start it and wait until it is ready.

        Args:
            ready: Returns whether it answers.
            stdin: Bytes for its standard input, which is then closed.
            pass_fds: File descriptors that it inherits.

        Raises:
            Unavailable: It cannot be run, ended at once, or was not ready in time; the message has its last output.
        """
        try:
            with self._output.open("wb") as output:
                self._process = await asyncio.create_subprocess_exec(
                    *script_command(pdeathsig_exec.__file__),
                    str(os.getpid()),
                    *self._command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    pass_fds=tuple(pass_fds),
                    start_new_session=True,  # Ctrl-C must reach the parent only, which needs the child while it drains
                )
        except OSError as error:
            raise Unavailable(f"{self._name} cannot be run: {error}") from error
        share_autogroup(self._process.pid)
        async with contextlib.AsyncExitStack() as unless_ready:
            unless_ready.push_async_callback(self.stop)
            if self._process.stdin is not None:
                self._process.stdin.write(stdin)
                self._process.stdin.close()
            await self._wait_until(ready, self._process)
            unless_ready.pop_all()

    async def run(self) -> None:
        """Wait until it ends; return if `stop` was called.

        Raises:
            Unavailable: It ended by itself.
        """
        process = self._process
        if process is None:
            return
        code = await process.wait()
        if self._process is process:
            self._process = None
            raise Unavailable(f"{self._name} ended with code {code}: {self._output_tail()}")

    async def stop(self) -> None:
        """Stop it with SIGTERM, after ten seconds with SIGKILL; do nothing if it does not run."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            log.warning("child process does not end, killing it", extra={"child": self._name})
            process.kill()
            await process.wait()

    async def _wait_until(self, ready: Callable[[], Awaitable[bool]], process: Process) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS):
                while not await ready():
                    if process.returncode is not None:
                        raise Unavailable(f"{self._name} did not start: {self._output_tail()}")
                    await asyncio.sleep(_PROBE_SECONDS)
        except TimeoutError:
            raise Unavailable(
                f"{self._name} was not ready within {READY_SECONDS:.0f} s: {self._output_tail()}"
            ) from None

    def _output_tail(self) -> str:
        try:
            return self._output.read_text(errors="replace")[-_TAIL:].strip() or "no output"
        except OSError as error:
            return str(error)
