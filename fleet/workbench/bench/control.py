"""How the processes of a benchmark communicate: the parent writes a command, the child an answer.

Each is one line of JSON, on the child's standard input and output. The member `do` of a command is its name, the other
members are its arguments.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fleet.ground.errors import Unavailable
from fleet.workbench.local_servers.module_command import module_command

ANSWER_SECONDS = 120.0
"""Longest wait for an answer: a child that has just started loads its models first, and 100,000 devices take long."""
_END_SECONDS = 5.0
_LONGEST_ANSWER = 1 << 24

JsonObject = Mapping[str, Any]


class Child:
    """A process that carries out commands, one after the other.

    Args:
        process: With pipes at its standard input and output.
        what: The name of the process in errors.
    """

    def __init__(self, process: asyncio.subprocess.Process, what: str) -> None:
        self.pid = process.pid
        self._process = process
        self._what = what

    async def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises:
            Unavailable: The process has ended, or does not answer within `ANSWER_SECONDS`.
        """
        down, up = self._process.stdin, self._process.stdout
        found = b""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if down and up:
                    down.write(line({"do": command, **arguments}))
                    await down.drain()
                    found = await up.readline()
        except TimeoutError as error:
            raise Unavailable(f"the {self._what} does not answer to `{command}` within {ANSWER_SECONDS:g} s") from error
        except ConnectionError as error:
            raise Unavailable(f"the {self._what} has ended") from error
        if not found:
            raise Unavailable(f"the {self._what} has ended")
        answered: dict[str, Any] = json.loads(found)
        return answered

    async def end(self) -> None:
        """Close the process's input, at which it ends; kill it if it has not ended after five seconds."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def child(module: str, what: str, *arguments: str) -> AsyncIterator[Child]:
    """Run a module of this package in a process of its own during the block."""
    process = await asyncio.create_subprocess_exec(
        *module_command(module, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST_ANSWER,
    )
    started = Child(process, what)
    try:
        yield started
    finally:
        await started.end()


def line(document: JsonObject) -> bytes:
    """Return a command or an answer as a line of JSON."""
    return json.dumps(document).encode() + b"\n"


async def obey(start: Callable[[], Callable[[dict[str, Any]], Awaitable[JsonObject]]]) -> None:
    """Carry out commands in the child, one after the other, until the parent closes the child's input.

    Args:
        start: Called once; returns the function that carries out a command and returns the answer.
    """
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    do = start()
    while command := await reader.readline():
        answer(await do(json.loads(command)))


def answer(document: JsonObject) -> None:
    """Write, in the child, the answer to the command that was read last."""
    sys.stdout.buffer.write(line(document))
    sys.stdout.buffer.flush()
