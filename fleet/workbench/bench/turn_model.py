"""A chat model over HTTP that costs next to nothing and knows when it wrote what.

The first chunk is a whole sentence, so that nothing is measured of how a model writes; the rest comes after the model
has `thought`.
"""

import asyncio
import re
import time
from dataclasses import dataclass

from fleet.workbench.bench.chat_http import END, HEAD, ChatModel, chunk

FIRST = "It is noon. "
REST = ("Is ", "there ", "anything ", "else ", "that ", "you ", "would ", "like ", "to ", "know?")
_NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_NAME = re.compile(rb"turn (\d+)")
_FIRST = HEAD + chunk(FIRST)
_PIECES = [chunk(piece) for piece in REST]


def words(number: int) -> str:
    """Return what a user says in a turn; the model finds its number in it."""
    return f"turn {number}"


@dataclass(slots=True)
class Written:
    """When an answer's first and last bytes were written, on `time.perf_counter`."""

    first: float
    last: float = 0.0


class TurnModel(ChatModel):
    """The model while it runs.

    Attributes:
        seconds: From a question to the end of its answer; a third of it before the first word.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.written: dict[int, Written] = {}

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        names = _NAME.findall(body)
        if not head.startswith(b"POST") or not names:
            writer.write(_NOTHING)
            return
        await asyncio.sleep(self.seconds / 3)
        note = self.written[int(names[-1])] = Written(time.perf_counter())
        writer.write(_FIRST)
        for piece in _PIECES:
            await asyncio.sleep(self.seconds * 2 / 3 / len(_PIECES))
            writer.write(piece)
        note.last = time.perf_counter()
        writer.write(END)
