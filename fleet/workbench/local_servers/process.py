"""Runs programs as child processes."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from fleet.ground.autogroup import share_autogroup
from fleet.ground.errors import ConfigError, Unavailable

STOP_SECONDS = 12.0
"""Time after SIGTERM after which a program is killed; longer than a server needs to shut down."""
_READ = 1 << 16
_LONGEST_LINE = 1 << 20
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


class Program:
    """A running program; copies its output to a log file and calls a callback for each line.

    Args:
        what: Name for messages.
        process: The process, with standard output and error in one pipe.
        log: File for its output.
        on_line: Called with each line without its end.
        stop_seconds: Seconds from SIGTERM until it is killed.
    """

    def __init__(
        self,
        what: str,
        process: asyncio.subprocess.Process,
        log: Path,
        on_line: Callable[[str], None],
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self.pid = process.pid
        self._stop_seconds = stop_seconds
        self._what = what
        self._process = process
        self._log = log
        self._on_line = on_line
        self._last = ""
        self._stopping = False

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs, negative: the number of the signal that ended it."""
        return self._process.returncode

    async def copy_output(self) -> None:
        """Copy its output until it ends.

        Raises:
            Unavailable: It ended before `stop` was called.
        """
        out = self._process.stdout
        with self._log.open("wb") as file:
            rest = b""
            while out and (data := await out.read(_READ)):
                rest = self._write_lines(rest + data, file)
        code = await self._process.wait()
        if self._stopping:
            return
        reason = self._last or f"exit code {code}"
        raise Unavailable(f"{self._what} ended: {reason} (log: {self._log})")

    async def stop(self) -> None:
        """Stop it with SIGTERM, and with SIGKILL after `stop_seconds`."""
        self._stopping = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._stop_seconds):
                    await self._process.wait()
                    return

    def _write_lines(self, data: bytes, file: BinaryIO) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            file.write(line + b"\n")
            text = line.decode(errors="replace")
            if text.strip() and not text.startswith("{"):
                self._last = text.strip()
            self._on_line(text)
        file.flush()
        return rest[-_LONGEST_LINE:]


@asynccontextmanager
async def run_program(
    what: str,
    command: Sequence[str],
    log: Path,
    on_line: Callable[[str], None] = lambda _: None,
    stop_seconds: float = STOP_SECONDS,
) -> AsyncIterator[Program]:
    """Run a program during the block.

    The program has its own session, so that Ctrl-C reaches only this process, which then stops the program. If this
    process is killed, the kernel ends the program.

    Args:
        what: Name for messages.
        command: Program and arguments.
        log: File for its output.
        on_line: Called with each line of its output.
        stop_seconds: Seconds from SIGTERM until it is killed.

    Raises:
        Unavailable: It ended during the block.
    """
    process = await asyncio.create_subprocess_exec(
        *_pdeathsig_prefix(),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    share_autogroup(process.pid)
    program = Program(what, process, log, on_line, stop_seconds)
    async with asyncio.TaskGroup() as group:
        output = group.create_task(program.copy_output(), name=f"output of {what}")
        try:
            yield program
        finally:
            await program.stop()
            # Cancel: a process that the program started may still hold the pipe open.
            output.cancel()


async def run_to_end(what: str, command: Sequence[str], log: Path, seconds: float) -> int:
    """Run a program to its end and return its exit code.

    Raises:
        Unavailable: It did not end within `seconds` and was killed.
    """
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *_pdeathsig_prefix(), *command, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        raise Unavailable(f"{what} had not ended after {seconds:g} s (log: {log})") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def find_program(name: str) -> str:
    """Return the path of a program; search the path and the folders of programs for root.

    Raises:
        ConfigError: The program is not installed.
    """
    found = shutil.which(name) or shutil.which(name, path=_SYSTEM_PATH)
    if found is None:
        raise ConfigError(f"`{name}` is not installed")
    return found


def _pdeathsig_prefix() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
