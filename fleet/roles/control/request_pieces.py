"""Reads the body of a request piece by piece."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import Request
from starlette.requests import ClientDisconnect

from fleet.roles.control.problems import Problem

SILENT_SECONDS = 20.0
"""Longest wait for the next piece of a file."""
DISCARDED = 1024 * 1024
DISCARD_SECONDS = 2.0
"""How much is read of what is refused, and how long: bytes beyond it, or later ones, may cost the client the answer."""


async def pieces(request: Request, largest: int, what: str) -> AsyncIterator[bytes]:
    """Yield the body as it comes.

    Args:
        request: Has the body.
        largest: Most bytes.
        what: The body is, for the refusal: `a file`.

    Raises:
        Problem: It is too large (413), nothing came for too long (408), or it broke off (400).
    """
    size, body = 0, _unlimited(request)
    async for piece in body:
        size += len(piece)
        if size > largest:
            await _discard(body)
            detail = f"{what} has at most {largest} bytes"
            raise Problem(413, "too-large", detail, headers={"Connection": "close"})
        yield piece


async def _unlimited(request: Request) -> AsyncIterator[bytes]:
    stream = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Problem(408, "too-slow", "the file did not come in time", headers={"Connection": "close"}) from None
        except ClientDisconnect:
            raise Problem(400, "broken-off", "the request broke off") from None
        yield piece


async def _discard(rest: AsyncIterator[bytes]) -> None:
    """Read what a client still sends of a body that is refused.

    A connection that is closed with unread data is reset, and with it the answer that the client has not read yet.
    """
    size = 0
    with suppress(TimeoutError, Problem):
        async with asyncio.timeout(DISCARD_SECONDS):
            async for piece in rest:
                size += len(piece)
                if size > DISCARDED:
                    return
