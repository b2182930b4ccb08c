"""A scripted OpenAI-compatible server over real HTTP, on a thread of its own.

Each route (`chat/completions`, `audio/transcriptions`, `audio/speech`) has a queue of answers; the last one stays.
"""

import asyncio
import contextlib
import email
import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Literal

import uvicorn

SSE = "text/event-stream"
JSON = "application/json"
DONE = b"data: [DONE]\n\n"

Event = MutableMapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the server does with one request.

    `then`: `end` the body properly, `break` the connection, or stay `silent` until the client hangs up. With `header`
    false the silence comes before the status line. Each piece of `body` is sent in its own write.
    """

    body: Sequence[bytes] = ()
    status: int = 200
    kind: str = JSON
    then: Literal["end", "break", "silent"] = "end"
    header: bool = True
    pace: float = 0.0
    """Seconds before each piece."""
    headers: Mapping[str, str] = field(default_factory=dict)


def sse(*chunks: Mapping[str, Any]) -> list[bytes]:
    """Return chunks as server-sent events, each in its own write."""
    return [b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n" for chunk in chunks]


def delta(finish: str | None = None, /, **fields: Any) -> dict[str, Any]:
    """Return one chunk of a streamed completion."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def spoken(*texts: str, then: Literal["end", "break", "silent"] = "end") -> Answer:
    """Return a completion that says these pieces."""
    pieces = sse(delta(role="assistant", content=""), *(delta(content=text) for text in texts))
    ending = [*sse(delta("stop")), DONE] if then == "end" else []
    return Answer([*pieces, *ending], kind=SSE, then=then)


def asked(*pieces: Mapping[str, Any], text: str = "", finish: str = "tool_calls") -> Answer:
    """Return a completion that consists of these pieces of tool calls."""
    chunks = [delta(tool_calls=[piece]) for piece in pieces]
    return Answer([*sse(delta(role="assistant", content=text or None), *chunks, delta(finish)), DONE], kind=SSE)


def refused(status: int, code: str = "some_code", message: str = "says no") -> Answer:
    """Return an error as OpenAI writes it."""
    return Answer([json.dumps({"error": {"message": message, "type": "t", "code": code}}).encode()], status)


@dataclass
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: bytes
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when the client has closed the connection before the answer's end."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, bytes]:
        """The fields of a multipart form."""
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        parts = email.message_from_bytes(head + self.body).get_payload()
        assert isinstance(parts, list)
        return {str(part.get_param("name", header="content-disposition")): _content(part) for part in parts}


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content


class OpenAiServer:
    """The server while it runs; `url` ends with `/v1`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.requests: list[Request] = []
        self.connections: set[tuple[str, int]] = set()
        """The client's end of every connection that carried a request."""
        self._answers: dict[str, deque[Answer]] = {}
        self._models: dict[str, Callable[[Request], Answer]] = {}

    def reset(self) -> None:
        """Forget all requests and all answers."""
        self.requests.clear()
        self.connections.clear()
        self._answers.clear()
        self._models.clear()

    async def asked(self, times: int = 1) -> None:
        """Wait until it was asked so often."""
        async with asyncio.timeout(240):
            while len(self.requests) < times:
                await asyncio.sleep(0.01)

    def script(self, route: str, *answers: Answer) -> None:
        """Set what the next requests to `/v1/<route>` get."""
        self._answers[f"/v1/{route}"] = deque(answers)

    def answer(self, route: str, model: Callable[[Request], Answer]) -> None:
        """Let a function answer all further requests to `/v1/<route>`."""
        self._models[f"/v1/{route}"] = model

    def models(self, *names: str) -> None:
        """Set what `/v1/models` lists."""
        listed = [{"id": name, "object": "model", "created": 1, "owned_by": "o"} for name in names]
        self.script("models", Answer([json.dumps({"object": "list", "data": listed}).encode()]))

    def chat(self, *answers: Answer) -> None:
        self.script("chat/completions", *answers)

    def transcriptions(self, *answers: Answer) -> None:
        self.script("audio/transcriptions", *answers)

    def speech(self, *answers: Answer) -> None:
        self.script("audio/speech", *answers)

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[Event]],
        send: Callable[[Event], Awaitable[None]],
    ) -> None:
        """Answer one request, as an ASGI application."""
        request = await self._note(scope, receive)
        model = self._models.get(request.path)
        answer = model(request) if model else self._next(request.path)
        if answer.header:
            headers = [(b"content-type", answer.kind.encode())]
            headers += [(name.encode(), value.encode()) for name, value in answer.headers.items()]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            for piece in answer.body:
                await asyncio.sleep(answer.pace)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        if answer.then == "silent":
            while (await receive())["type"] != "http.disconnect":
                pass
            request.hung_up.set()
        elif answer.then == "end":
            await send({"type": "http.response.body", "body": b""})
        # A call that returns before its answer is complete makes the server cut the connection.

    async def _note(self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Event]]) -> Request:
        body, more = b"", True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        request = Request(scope["path"], headers, body)
        self.requests.append(request)
        self.connections.add(tuple(scope["client"]))
        return request

    def _next(self, path: str) -> Answer:
        answers = self._answers.get(path)
        if not answers:
            return refused(404, "not_scripted")
        return answers.popleft() if len(answers) > 1 else answers[0]


@contextlib.contextmanager
def run_openai_server() -> Iterator[OpenAiServer]:
    """Run a server on a free loopback port until the block ends."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        app = OpenAiServer(listener.getsockname()[1])
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        listener.listen(100)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="openai server")
        thread.start()
        try:
            yield app
        finally:
            server.should_exit = True
            thread.join(240)
            assert not thread.is_alive()
