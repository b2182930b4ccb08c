"""Programs as child processes."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from fleet.ground.errors import ConfigError, Unavailable

STOP_SECONDS = 12.0
"""Longer than a server needs to end in order; after it the program is killed."""
_READ = 1 << 16
_LONGEST_LINE = 1 << 20
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


class Program:
    """A program that was started; what it writes goes to a log file and, line by line, to a listener.

    Args:
        what: Names it in messages.
        process: The program, with standard output and error in one pipe.
        log: File for what it writes.
        on_line: Called with every line without its end.
        patience: Seconds that it is given to end in order.
    """

    def __init__(
        self,
        what: str,
        process: asyncio.subprocess.Process,
        log: Path,
        on_line: Callable[[str], None],
        patience: float = STOP_SECONDS,
    ) -> None:
        self.pid = process.pid
        self._patience = patience
        self._what = what
        self._process = process
        self._log = log
        self._on_line = on_line
        self._last = ""
        self._stopping = False

    @property
    def code(self) -> int | None:
        """The exit code, once it has ended; below 0 the signal that ended it."""
        return self._process.returncode

    async def attend(self) -> None:
        """Pass on what it writes, until it ends.

        Raises:
            Unavailable: It was not meant to end yet.
        """
        out = self._process.stdout
        with self._log.open("wb") as file:
            rest = b""
            while out and (data := await out.read(_READ)):
                rest = self._pass_on(rest + data, file)
        code = await self._process.wait()
        if self._stopping:
            return
        reason = self._last or f"exit code {code}"
        raise Unavailable(f"{self._what} ended: {reason} (log: {self._log})")

    async def stop(self) -> None:
        """Ask it to end (SIGTERM), and end it after a limit."""
        self._stopping = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    await self._process.wait()
                    return

    def _pass_on(self, data: bytes, file: BinaryIO) -> bytes:
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
    patience: float = STOP_SECONDS,
) -> AsyncIterator[Program]:
    """Run a program beside the block and end it with the block.

    It is in a process group of its own, so that Ctrl-C reaches this program only, which ends it in order; should this
    itself be killed, the kernel ends it.

    Args:
        what: Names it in messages.
        command: Program and arguments.
        log: File for what it writes.
        on_line: Called with every line that it writes.
        patience: Seconds that it is given to end in order.

    Raises:
        Unavailable: It ended while the block ran.
    """
    process = await asyncio.create_subprocess_exec(
        *_leash(),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    program = Program(what, process, log, on_line, patience)
    async with asyncio.TaskGroup() as group:
        attending = group.create_task(program.attend(), name=f"attend {what}")
        try:
            yield program
        finally:
            await program.stop()
            # Something that it started may still hold the pipe open.
            attending.cancel()


async def finish(what: str, command: Sequence[str], log: Path, seconds: float) -> int:
    """Run a program to its end and return its exit code.

    Raises:
        Unavailable: It had not ended after so many seconds; it is killed.
    """
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *_leash(), *command, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out
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
    """Return the path of a program, also from the directories that only root has in its path.

    Raises:
        ConfigError: It is not installed.
    """
    found = shutil.which(name) or shutil.which(name, path=_SYSTEM_PATH)
    if found is None:
        raise ConfigError(f"`{name}` is not installed")
    return found


def _leash() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
