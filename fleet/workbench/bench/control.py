"""How the processes of a benchmark communicate: a line of JSON with a command, a line of JSON back."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fleet.ground.errors import Unavailable

ANSWER_SECONDS = 30.0
"""Longest wait for an answer: models are loaded meanwhile."""
_END_SECONDS = 5.0
_LONGEST_ANSWER = 1 << 24

Message = Mapping[str, Any]


class Child:
    """A process that obeys one command after the other.

    Args:
        process: With pipes at its standard input and output.
        what: Names it in errors.
    """

    def __init__(self, process: asyncio.subprocess.Process, what: str) -> None:
        self.pid = process.pid
        self._process = process
        self._what = what

    async def ask(self, verb: str, **arguments: object) -> dict[str, Any]:
        """Return the answer to one order.

        Raises:
            Unavailable: The process has ended, or does not answer.
        """
        down, up = self._process.stdin, self._process.stdout
        found = b""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if down and up:
                    down.write(line({"do": verb, **arguments}))
                    await down.drain()
                    found = await up.readline()
        except TimeoutError as error:
            raise Unavailable(f"the {self._what} does not answer to `{verb}` within {ANSWER_SECONDS:g} s") from error
        except ConnectionError as error:
            raise Unavailable(f"the {self._what} has ended") from error
        if not found:
            raise Unavailable(f"the {self._what} has ended")
        answered: dict[str, Any] = json.loads(found)
        return answered

    async def end(self) -> None:
        """Let it end by closing its input, and end it after a limit."""
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
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST_ANSWER,
    )
    started = Child(process, what)
    try:
        yield started
    finally:
        await started.end()


def line(message: Message) -> bytes:
    """Return a message as it travels."""
    return json.dumps(message).encode() + b"\n"


async def obey(start: Callable[[], Callable[[dict[str, Any]], Awaitable[Message]]]) -> None:
    """Do one order after the other, in the child, until the parent closes its end.

    Args:
        start: Makes what does an order and returns the answer.
    """
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    do = start()
    while order := await reader.readline():
        answer(await do(json.loads(order)))


def answer(message: Message) -> None:
    """Answer the order that was read last, in the child."""
    sys.stdout.buffer.write(line(message))
    sys.stdout.buffer.flush()
