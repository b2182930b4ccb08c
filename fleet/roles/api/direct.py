"""Answers the requests that come most, outside of FastAPI: its layers cost a bootstrap a sixth of its CPU time."""

from collections.abc import Awaitable, Callable, Mapping

from fastapi import Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

Answer = Callable[[Request], Awaitable[Response]]
Refuse = Callable[[Request, Exception], Awaitable[Response]]


class DirectRoutes:
    """Answers POST requests of fixed paths itself, and passes on all others, which the routers refuse or answer.

    Args:
        app: Has the same routes.
        answers: By path.
        refuse: Makes the answer of an HTTPException.
    """

    def __init__(self, app: ASGIApp, answers: Mapping[str, Answer], refuse: Refuse) -> None:
        self._app = app
        self._answers = answers
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = scope["type"] == "http" and scope["method"] == "POST"
        answer = self._answers.get(scope["path"]) if posted else None
        if answer is None:
            await self._app(scope, receive, send)
            return
        scope["endpoint"] = answer
        request = Request(scope, receive, send)
        try:
            response = await answer(request)
        except HTTPException as error:
            response = await self._refuse(request, error)
        await response(scope, receive, send)
