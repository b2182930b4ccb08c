"""Refusals of the api, and their counts."""

from collections import Counter
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NOWHERE = "elsewhere"
_FIRST_REFUSAL = 400


class RefusedRequest(HTTPException):
    """A refusal that is counted by its reason, because route and status alone do not show it.

    Args:
        reason: One of a fixed set, never text of a client.
        status: Of the answer.
        said: To the client.
        headers: Of the answer.
    """

    def __init__(self, reason: str, status: int, said: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, said, headers)
        self.reason = reason


class Refusals:
    """Counts refused requests by route and status, `/xiaozhi/ota/ 429`; paths that are no route count as one.

    Args:
        app: Answers the requests.
        counts: Takes the counts; it has at most one entry for each route and status.
    """

    def __init__(self, app: ASGIApp, counts: Counter[str]) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= _FIRST_REFUSAL:
                self._counts[f"{_route(scope)} {message['status']}"] += 1
            await send(message)

        await self._app(scope, receive, counted if scope["type"] == "http" else send)


def _route(scope: Scope) -> str:
    if scope.get("path_params"):
        return getattr(scope.get("route"), "path", _NOWHERE)
    return str(scope["path"]) if "endpoint" in scope else _NOWHERE
