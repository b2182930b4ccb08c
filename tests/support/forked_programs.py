"""Python modules that `asyncio` starts as programs, forked from a process that has imported them (`preloaded`).

A benchmark starts five to ten of them, and each would import for half a second of a core or a whole one. What they
start by themselves is forked from the same process.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tests.support.forked import CONTEXT, die_with_parent
from tests.support.patient_module import COMMAND, run
from tests.support.shared_forks import SERVER, use_server

_START = asyncio.create_subprocess_exec


def fork_programs(patch: pytest.MonkeyPatch) -> None:
    """Let asyncio fork what would run through `patient_module`; all other programs are started as usual."""
    patch.setattr(asyncio, "create_subprocess_exec", _start)


class ForkedProgram:
    """A forked module; behaves as `asyncio.subprocess.Process` does as far as fleet's programs need it.

    Args:
        words: The module and its arguments.
        environment: Its whole environment.
        session: Whether it begins a session.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], *, session: bool) -> None:
        self._words, self._environment, self._session = list(words), dict(environment), session
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self._ended = asyncio.Event()
        self._transports: list[asyncio.BaseTransport] = []

    async def start(self, streams: Mapping[str, int | None], limit: int) -> None:
        """Start it with these standard streams: as asyncio knows them, a pipe or nothing."""
        loop, inside, outside = asyncio.get_running_loop(), dict[int, Connection](), dict[int, Connection]()
        for number, name in enumerate(("stdin", "stdout")):
            if streams.get(name) == asyncio.subprocess.PIPE:
                reading, writing = CONTEXT.Pipe(duplex=False)
                inside[number], outside[number] = (writing, reading) if number else (reading, writing)
        both = streams.get("stderr") == asyncio.subprocess.STDOUT
        forkserver.ensure_running()
        arguments = (SERVER["_forkserver_address"], self._words, self._environment, inside, both, self._session)
        self._process = CONTEXT.Process(target=_run, args=arguments)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid
        loop.add_reader(self._process.sentinel, self._note_end)
        for connection in inside.values():
            connection.close()
        if 1 in outside:
            self.stdout = asyncio.StreamReader(limit)
            stdout = self.stdout
            reader = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), _file(outside[1], "rb"))
            self._transports.append(reader[0])
        if 0 in outside:
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
            transport, _ = await loop.connect_write_pipe(lambda: protocol, _file(outside[0], "wb"))
            self._transports.append(transport)
            self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    async def wait(self) -> int:
        await self._ended.wait()
        # Whoever waits has read its output, or wants no more of it.
        for transport in self._transports:
            transport.close()
        await asyncio.sleep(0)
        code = self._process.exitcode
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _note_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._process.join()
        self._ended.set()


async def _start(*command: str, **options: Any) -> Any:
    found = _module_of(command, options.get("env") or os.environ)
    if found is None:
        return await _START(*command, **options)
    words, environment = found
    program = ForkedProgram(words, environment, session=bool(options.get("start_new_session")))
    await program.start(options, options.get("limit", 1 << 16))
    return program


def _module_of(command: Sequence[str], outside: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the words and the environment of a command that runs a module through `patient_module`."""
    at = next((at for at in range(len(command)) if tuple(command[at : at + 3]) == COMMAND), None)
    if at is None:
        return None
    environment, before = dict(outside), list(command[:at])
    if "--" in before:  # of setpriv
        before = before[before.index("--") + 1 :]
    words = iter(before[1:])
    for word in words:
        if word == "-i":
            environment.clear()
        elif word == "-u":
            environment.pop(next(words), None)
        else:
            name, _, value = word.partition("=")
            environment[name] = value
    return list(command[at + 3 :]), environment


def _file(connection: Connection, mode: str) -> Any:
    file = os.fdopen(os.dup(connection.fileno()), mode, 0)
    connection.close()
    return file


def _run(
    address: str,
    words: list[str],
    environment: dict[str, str],
    streams: dict[int, Connection],
    both: bool,
    session: bool,
) -> None:
    if session:
        os.setsid()
    die_with_parent()
    for number, connection in streams.items():
        os.dup2(connection.fileno(), number)
        connection.close()
    if both:
        os.dup2(1, 2)
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    use_server(address)
    asyncio.create_subprocess_exec = _start
    if words[0] != "fleet":
        # It runs as the main module, anew.
        sys.modules.pop(words[0], None)
    run(*words)
