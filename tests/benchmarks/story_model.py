"""A chat model over HTTP that answers every question with the text that it was given."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.workbench.local_servers.ports import LOOPBACK

STORIES = {
    "en": (
        "The old harbour town lies between two green hills. Every morning the fishermen bring their boats back before"
        " the sun is up. On the market square they sell what they have caught during the night. In summer many visitors"
        " walk along the narrow streets and look at the painted doors. When winter comes the town is quiet again, and"
        " the children play in the snow behind the church. At night the lighthouse sends its beam across the water."
    ),
    "zh": (
        "从前有一座小城，坐落在两座青山之间。每天早上，渔民们在日出之前把船开回港口。他们在市场上卖掉夜里打到的鱼。"
        "夏天有很多游客来这里，沿着狭窄的街道散步。冬天来了，小城又安静下来，孩子们在教堂后面玩雪。到了晚上，"
        "灯塔的光照在海面上，船员们知道自己快要回家了。"
    ),
}
"""Answers of about 20 s, by language."""
QUESTIONS = {"en": "Tell me a story, please.", "zh": "请给我讲一个故事。"}
REPLIES = {"en": "All right, I heard you.", "zh": "好的，我听到了。"}
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class StoryModel:
    """The model while it runs; `text` is its next answer."""

    def __init__(self) -> None:
        self.text = REPLIES["en"]
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                await reader.readexactly(int(length[1]) if length else 0)
                writer.write(_HEAD + b"".join(map(_framed, (_event(self.text), _event(), b"data: [DONE]\n\n", b""))))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def story_model() -> AsyncIterator[StoryModel]:
    """Serve on a free port during the block."""
    model = StoryModel()
    server = await asyncio.start_server(model.serve, LOOPBACK, 0)
    model.port = server.sockets[0].getsockname()[1]
    try:
        yield model
    finally:
        server.close()


def _event(text: str = "") -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None if text else "stop"}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
