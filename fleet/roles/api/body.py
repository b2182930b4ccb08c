"""Read request bodies within limits of size and time."""

import asyncio

from fastapi import Request

from fleet.roles.api.refusals import RefusedRequest

BODY_SECONDS = 10.0
"""For a body of a few KB; a slower client only holds a connection."""


async def read_body(request: Request, limit: int) -> bytes:
    """Return the first `limit` bytes of the body; a longer one is not read to its end.

    Raises:
        RefusedRequest: It did not come in time (408), or the client is gone (400).
    """
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more and len(body) <= limit:
                # `Request.stream` would keep the last piece while it waits for the next one: thousands of slow bodies
                # would take twice their memory.
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise RefusedRequest("body: broken off", 400, "the request broke off")
                body += message.pop("body", b"")
                more = message.get("more_body", False)
    except TimeoutError:
        raise RefusedRequest("body: slow", 408, "the request did not come in time", {"Connection": "close"}) from None
    return bytes(body[:limit])
