"""Reads the body of a request piece by piece."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.requests import ClientDisconnect

from fleet.roles.control.problems import Problem

SILENT_SECONDS = 20.0
"""Longest wait for the next piece of a file."""


async def pieces(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as it comes.

    Raises:
        Problem: Nothing came for too long (408), or it broke off (400).
    """
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
