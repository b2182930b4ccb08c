"""Bodies of requests to a model, read with a limit."""

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request


async def read_body(request: Request, limit: int) -> bytes:
    """Return a request's body.

    Raises:
        HTTPException: It is longer than `limit` bytes: 413; or the client has gone, so that nobody reads which status.
    """
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > limit:
                raise HTTPException(413, "The request is too large.")
    except ClientDisconnect:
        raise HTTPException(400, "The request broke off.") from None
    return bytes(body)
