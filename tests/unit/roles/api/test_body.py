import asyncio
import weakref
from typing import Any

import pytest
from fastapi import Request

from fleet.roles.api.body import read_body
from fleet.roles.api.refusals import RefusedRequest


class Piece(bytearray):
    """Can be referred to weakly."""


def request(*messages: dict[str, Any]) -> Request:
    """Return a request that receives these messages, and then nothing."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return Request({"type": "http"}, receive)


def piece(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_is_read_to_its_end_or_to_the_limit() -> None:
    assert await read_body(request(piece(b"ab"), piece(b"cd", more=False)), 4) == b"abcd"
    assert await read_body(request({"type": "http.request"}), 4) == b""
    assert await read_body(request(piece(b"ab"), piece(b"cde")), 4) == b"abcd"


async def test_no_piece_is_kept_beside_the_body_while_the_next_one_is_awaited() -> None:
    first = piece(Piece(b"ab"))
    kept = weakref.ref(first["body"])

    async def receive() -> dict[str, Any]:
        nonlocal first
        if first:
            message, first = first, {}
            return message
        assert kept() is None
        return piece(b"cd", more=False)

    assert await read_body(Request({"type": "http"}, receive), 100) == b"abcd"


@pytest.mark.parametrize(
    ("messages", "status", "reason"),
    [
        ([piece(b"ab")], 408, "body: slow"),
        ([piece(b"ab"), {"type": "http.disconnect"}], 400, "body: broken off"),
    ],
)
async def test_who_sends_no_whole_body_is_refused(messages: list[dict[str, Any]], status: int, reason: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        await read_body(request(*messages), 100)
    assert (refused.value.status_code, refused.value.reason) == (status, reason)
