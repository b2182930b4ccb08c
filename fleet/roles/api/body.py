"""Read request bodies within limits of size and time."""

import asyncio

from fastapi import Request
from starlette.requests import ClientDisconnect

from fleet.roles.api.refusals import RefusedRequest

BODY_SECONDS = 10.0
"""For a body of a few KB; a slower client only holds a connection."""


async def read_body(request: Request, limit: int, seconds: float | None = None) -> bytes:
    """Return the first `limit` bytes of the body; a longer one is not read to its end.

    Raises:
        RefusedRequest: It did not come in time (408), or the client is gone (400).
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS if seconds is None else seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    break
    except TimeoutError:
        raise RefusedRequest("body: slow", 408, "the request did not come in time", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise RefusedRequest("body: broken off", 400, "the request broke off") from None
    return bytes(body[:limit])
