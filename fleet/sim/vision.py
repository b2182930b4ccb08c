"""The camera's upload: a photo and a question to the server's vision address (contract 6.1)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2

from fleet.sim.board import Board

_BOUNDARY = "----ESP32_CAMERA_BOUNDARY"
_CHUNK = 2048
_SECONDS = 30.0
_HANGS_FROM = 8192


@dataclass(frozen=True, slots=True)
class Explanation:
    """The server's answer as it came, or why there is none."""

    text: str
    failed: bool = False


async def explain(board: Board, question: str) -> Explanation:
    """Upload the board's photo with a question."""
    if not board.vision_url:
        return Explanation("Image explain URL or token is not set", failed=True)
    headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}", **board.upload_headers}
    if board.vision_token:
        headers["Authorization"] = f"Bearer {board.vision_token}"
    try:
        async with httpx2.AsyncClient(timeout=_SECONDS, trust_env=False) as client:
            # A body that is iterated goes out in chunks without a length, as the board's does.
            response = await client.post(board.vision_url, content=_form(board.photo, question), headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return Explanation("Failed to upload photo", failed=True)
    if response.status_code != 200 or len(response.content) >= _HANGS_FROM:
        return Explanation("Failed to upload photo", failed=True)
    return Explanation(response.text)


async def _form(photo: bytes, question: str) -> AsyncIterator[bytes]:
    yield _head('name="question"') + question.encode() + b"\r\n"
    yield _head('name="file"; filename="camera.jpg"', "Content-Type: image/jpeg\r\n")
    for at in range(0, len(photo), _CHUNK):
        yield photo[at : at + _CHUNK]
    yield f"\r\n--{_BOUNDARY}--\r\n".encode()


def _head(disposition: str, more: str = "") -> bytes:
    return f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n{more}\r\n".encode()
