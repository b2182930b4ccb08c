"""A chat model over HTTP that costs next to nothing and knows when it wrote what.

It speaks just enough HTTP for one library. The first chunk is a whole sentence, so that nothing is measured of how a
model writes; the rest comes after the model has `thought`.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fleet.workbench.local_servers.ports import LOOPBACK

FIRST = "It is noon. "
REST = ("Is ", "there ", "anything ", "else ", "that ", "you ", "would ", "like ", "to ", "know?")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_NAME = re.compile(rb"turn (\d+)")


def words(number: int) -> str:
    """Return what a user says in a turn; the model finds its number in it."""
    return f"turn {number}"


def _chunk(text: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None if text else "stop"}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return data if text else data + b"data: [DONE]\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


_FIRST = _framed(_chunk(FIRST))
_PIECES = [_framed(_chunk(piece)) for piece in REST]
_LAST = _framed(_chunk()) + b"0\r\n\r\n"


@dataclass(slots=True)
class Written:
    """When an answer's first and last bytes were written, on `time.perf_counter`."""

    first: float
    last: float = 0.0


class TurnModel:
    """The model while it runs.

    Attributes:
        seconds: From a question to the end of its answer; a third of it before the first word.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.port = 0
        self.written: dict[int, Written] = {}

    @property
    def url(self) -> str:
        """The address that a client of the library is given."""
        return f"http://{LOOPBACK}:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                await self._answer(head, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        names = _NAME.findall(body)
        if not head.startswith(b"POST") or not names:
            writer.write(_NOTHING)
            return
        await asyncio.sleep(self.seconds / 3)
        note = self.written[int(names[-1])] = Written(time.perf_counter())
        writer.write(_HEAD + _FIRST)
        for piece in _PIECES:
            await asyncio.sleep(self.seconds * 2 / 3 / len(_PIECES))
            writer.write(piece)
        note.last = time.perf_counter()
        writer.write(_LAST)
        await writer.drain()


@asynccontextmanager
async def turn_model() -> AsyncIterator[TurnModel]:
    """Serve on a free port during the block."""
    model = TurnModel()
    server = await asyncio.start_server(model.serve, LOOPBACK, 0, backlog=512)
    model.port = server.sockets[0].getsockname()[1]
    try:
        yield model
    finally:
        server.close()
