"""The gateway's answers to plain HTTP requests: health, and the test page."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from fleet.ground.errors import Unavailable
from fleet.roles.gateway.port import page

READY_SECONDS = 1.0
"""Longest wait for Redis; health probes seldom wait longer."""

_JSON = "application/json"
_HINT = b"This is a WebSocket server; its test page is at /test.\n"


class HttpAnswers:
    """Answers requests that do not open a WebSocket.

    Args:
        ping: Returns when Redis answers; raises `Unavailable`.
        drains: Returns whether new clients are refused.
    """

    def __init__(self, ping: Callable[[], Awaitable[None]], drains: Callable[[], bool]) -> None:
        self._ping = ping
        self._drains = drains

    async def answer(self, request: Request) -> Response | None:
        """Return the response; None if the request opens a WebSocket, which is possible on every path."""
        if any("websocket" in value.lower() for value in request.headers.get_all("Upgrade")):
            return None
        match request.path.partition("?")[0]:
            case "/healthz":
                return _respond(HTTPStatus.OK, _JSON, b'{"status":"alive"}')
            case "/readyz":
                return await self._ready()
        if found := page.answer(request.path):
            return _respond(found.status, found.content_type, found.body, found.headers)
        return _respond(HTTPStatus.UPGRADE_REQUIRED, "text/plain; charset=utf-8", _HINT, (("Upgrade", "websocket"),))

    async def _ready(self) -> Response:
        reason = "leaving" if self._drains() else ""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._ping()
        except (Unavailable, TimeoutError) as error:
            reason = str(error) or "Redis: no answer in time"
        if reason:
            body = json.dumps({"status": "unavailable", "reason": reason}).encode()
            return _respond(HTTPStatus.SERVICE_UNAVAILABLE, _JSON, body)
        return _respond(HTTPStatus.OK, _JSON, b'{"status":"ready"}')


def _respond(status: int, kind: str, body: bytes, more: tuple[tuple[str, str], ...] = ()) -> Response:
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"})
    for name, value in more:
        headers[name] = value
    return Response(int(status), HTTPStatus(status).phrase, headers, body)
