from typing import Any

import pytest
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from fleet.roles.api.direct import DirectRoutes


async def routers(scope: Scope, receive: Receive, send: Send) -> None:
    await Response("routers", 405)(scope, receive, send)


async def answer(request: Request) -> Response:
    if not (body := await request.body()):
        raise HTTPException(400, "empty")
    return Response(body)


async def refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/boot", b"hello", (200, b"hello")),
        ("POST", "/boot", b"", (400, b'{"error":"empty"}')),
        ("GET", "/boot", b"hello", (405, b"routers")),
        ("POST", "/boot/", b"hello", (405, b"routers")),
    ],
)
async def test_a_post_to_one_of_the_paths_passes_no_router_and_all_else_does(
    method: str, path: str, body: bytes, expected: tuple[int, bytes]
) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    direct = DirectRoutes(routers, {"/boot": answer}, refuse)
    await direct({"type": "http", "method": method, "path": path, "headers": []}, receive, send)
    assert (sent[0]["status"], sent[1]["body"]) == expected


async def test_a_failure_that_is_no_refusal_is_left_to_the_server() -> None:
    async def fail(_: Request) -> Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await DirectRoutes(routers, {"/boot": fail}, refuse)(
            {"type": "http", "method": "POST", "path": "/boot", "headers": []}, None, None
        )
