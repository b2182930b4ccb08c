import asyncio
import weakref
from typing import Any

import pytest
from fastapi import Request

from fleet.roles.api import photo
from fleet.roles.api.photo import drain


class Piece(bytearray):
    """Can be referred to weakly."""


def request(*bodies: bytes, ended: bool = True) -> tuple[Request, list[Any]]:
    """Return a request with a body of these pieces, and what is left of them; no piece may be kept by its reader."""
    left = [Piece(body) for body in bodies]
    kept: list[weakref.ref[Piece]] = []

    async def receive() -> dict[str, Any]:
        assert [one for one in kept if one() is not None] == []
        if not left:
            await asyncio.Event().wait()
        kept.append(weakref.ref(left[0]))
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left) or not ended}

    return Request({"type": "http"}, receive), left


@pytest.mark.parametrize("ended", [True, False])
async def test_a_refused_upload_is_read_to_its_end_and_no_piece_is_kept(ended: bool) -> None:
    asked, left = request(b"ab", b"cd", b"ef", ended=ended)
    await drain(asked)
    assert left == []


async def test_an_upload_that_was_read_is_not_read_again() -> None:
    asked, _ = request(b"ab")
    async for _ in asked.stream():
        pass
    async with asyncio.timeout(photo._DRAIN_SECONDS / 2):
        await drain(asked)


async def test_an_endless_upload_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photo, "_MOST_DRAINED", 3)
    asked, left = request(b"ab", b"cd", b"ef", b"gh")
    await drain(asked)
    assert len(left) == 2
