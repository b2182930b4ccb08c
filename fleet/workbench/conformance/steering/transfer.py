"""Forms that requests bring, and answers that can also fail on the wire."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, suppress
from email.message import Message

from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fleet.workbench.conformance.steering.script import LONGEST_WAIT

_NAME = re.compile(rb'[;\s]name="?([^";\r\n]+)"?')
_DELIBERATE = {
    "ASGI callable returned without completing response.",
    "ASGI callable returned without starting response.",
}
_LAST_SECONDS = 2.0


class Sending(Response):
    """A body in pieces, which end when the client goes away; with `cut` the connection is closed after the last one."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], media_type: str, *, cut: bool = False) -> None:
        super().__init__(media_type=media_type)
        # A length of zero is what the body so far would have.
        del self.headers["content-length"]
        self._pieces = pieces
        self._cut = cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _until_either(self._send(send), wait_until_gone(receive))

    async def _send(self, send: Send) -> None:
        async with aclosing(self._pieces) as pieces:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        if not self._cut:
            await send({"type": "http.response.body", "body": b""})


class Silence(Response):
    """No answer: not even a status until the client has gone, or for the longest wait."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                await wait_until_gone(receive)
                return
        await refusal(504, "This scene gives no answer.")(scope, receive, send)


class Curfew:
    """Ends all answers that are under way when the models stop, and lets no further ones begin."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return what answers as `app` does until the end."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if self._over.is_set():
                await refusal(503, "The scripted models have stopped.")(scope, receive, send)
                return
            self._busy += 1
            self._idle.clear()
            try:
                await _until_either(app(scope, receive, send), self._over.wait())
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

        return answer

    async def close(self) -> None:
        """End what is under way; its connections are cut."""
        self._over.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self._idle.wait()


class Deliberate(logging.Filter):
    """Keeps the HTTP server from reporting the answers that are cut on purpose."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.msg not in _DELIBERATE


async def _until_either(work: Awaitable[None], end: Awaitable[object]) -> None:
    """Do some work until it is done or the end has come."""

    async def finish(awaited: Awaitable[object]) -> None:
        await awaited

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(finish(work), name="answer"), group.create_task(finish(end), name="answer's end")]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


async def wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def read_form(body: bytes, content_type: str) -> dict[str, bytes]:
    """Return the fields of a multipart form by their names; nothing when it is none."""
    head = Message()
    head["content-type"] = content_type
    boundary = head.get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        return {}
    fields = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.encode())[1:]:
        about, separator, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(about)
        if separator and name:
            fields[name[1].decode(errors="replace")] = content
    return fields


def refusal(status: int, message: str, param: str | None = None) -> JSONResponse:
    """Return an error as OpenAI writes it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": param, "code": None}}, status)
