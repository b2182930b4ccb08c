"""Just enough HTTP for a benchmark's chat model, whose answers are streamed; it serves one library, not anybody."""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from fleet.workbench.local_servers.ports import LOOPBACK

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def chunk(text: str = "") -> bytes:
    """Return a piece of an answer; without text, its end."""
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None if text else "stop"}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return _framed(data) if text else _framed(data + b"data: [DONE]\n\n") + _framed(b"")


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = chunk()


class ChatModel(ABC):
    """A model; `port` is where it is served."""

    def __init__(self) -> None:
        self.port = 0

    @property
    def url(self) -> str:
        """The address that a client of the library is given."""
        return f"http://{LOOPBACK}:{self.port}/v1"

    @abstractmethod
    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        """Write the answer to a request."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                await self.answer(head, await reader.readexactly(int(length[1]) if length else 0), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


M = TypeVar("M", bound=ChatModel)


@asynccontextmanager
async def serving(model: M) -> AsyncIterator[M]:
    """Serve a model on a free port during the block."""
    server = await asyncio.start_server(model.serve, LOOPBACK, 0, backlog=512)
    model.port = server.sockets[0].getsockname()[1]
    try:
        yield model
    finally:
        server.close()
