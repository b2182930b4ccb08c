"""The id of a request: in its answer, in its audit rows, in all log lines that it causes."""

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fleet.ground import log

REQUEST_ID = "X-Request-Id"
_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ATTRIBUTE = "request_id"


class RequestIds:
    """Gives every request an id: that of its header if it is sane, else a new one.

    Args:
        app: Answers the requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = Headers(scope=scope).get(REQUEST_ID, "")
        number = named if _SANE.fullmatch(named) else secrets.token_hex(8)
        scope.setdefault("state", {})[_ATTRIBUTE] = number

        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = number
            await send(message)

        with log.fields(request=number):
            await self._app(scope, receive, stamped)


def request_id(request: Request) -> str:
    """Return the id of a request; empty if it failed before it had one."""
    return str(getattr(request.state, _ATTRIBUTE, ""))
