"""A camera's upload: the form with question and photo, within limits (contract 6.1)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

LARGEST_PHOTO = 2 * 1024 * 1024
"""Bytes; cameras of these boards send 10 to 200 KB."""
LARGEST_QUESTION = 4096
UPLOAD_SECONDS = 30.0
"""For the whole form: 200 KB over a slow mobile network."""

_FORM = 16 * 1024
"""What a form may have beside the photo."""
_MOST_DRAINED = 16 * 1024 * 1024
_DRAIN_SECONDS = 10.0
_JPEG = b"\xff\xd8\xff"


@dataclass(frozen=True, slots=True)
class Upload:
    """A question, and the photo that it is about."""

    question: str
    jpeg: bytes


class _Form(MultiPartParser):
    spool_max_size = LARGEST_PHOTO + _FORM
    """Photos stay in memory: fewer are taken at a time than would need a disk."""


async def read_upload(request: Request) -> Upload:
    """Return what was uploaded, with a length or in chunks.

    Raises:
        HTTPException: It is too large (413), no form (415), not whole (400), no JPEG (415), or too slow (408).
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise HTTPException(415, "the upload must be multipart/form-data")
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            return await _read(request)
    except TimeoutError:
        raise HTTPException(408, "the upload did not come in time", {"Connection": "close"}) from None
    except (MultiPartException, UnicodeDecodeError, ValueError):
        raise HTTPException(400, "the form is damaged") from None
    except ClientDisconnect:
        raise HTTPException(400, "the upload broke off") from None


async def drain(request: Request) -> None:
    """Read what is left of a refused upload: a client that still writes would not see its answer."""
    size = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while size <= _MOST_DRAINED:
                # A new stream for each piece: it keeps the last one while it waits for the next.
                async with aclosing(request.stream()) as pieces:
                    size += len(await anext(pieces))
    except (TimeoutError, ClientDisconnect, RuntimeError):
        # RuntimeError: it was read to its end before.
        return


async def _read(request: Request) -> Upload:
    stream = _limited(request, LARGEST_PHOTO + _FORM)
    parser = _Form(request.headers, stream, max_files=1, max_fields=8, max_part_size=LARGEST_QUESTION)
    form = await parser.parse()
    try:
        question, file = form.get("question"), form.get("file")
        if not isinstance(question, str) or not question.strip():
            raise HTTPException(400, "the form has no question")
        if not isinstance(file, UploadFile):
            raise HTTPException(400, "the form has no file")
        jpeg = await file.read()
    finally:
        await form.close()
    if not jpeg.startswith(_JPEG):
        raise HTTPException(415, "the file is no JPEG")
    if len(jpeg) > LARGEST_PHOTO:
        raise HTTPException(413, f"the photo is larger than {LARGEST_PHOTO} bytes")
    return Upload(question.strip(), jpeg)


async def _limited(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    left = limit
    async for chunk in request.stream():
        left -= len(chunk)
        if left < 0:
            raise HTTPException(413, f"the photo is larger than {LARGEST_PHOTO} bytes")
        yield chunk
