"""The camera's upload: a photo and a question to the server's vision address (contract 6.1)."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import httpx2

from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.tools.board import Board

BOUNDARY = "----ESP32_CAMERABOUNDARY"
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
    headers = dict(board.upload_headers)
    if board.vision_token:
        headers["Authorization"] = f"Bearer {board.vision_token}"
    response = await _post(board.vision_url, _form(board.photo, "camera.jpg", question), headers)
    if response is None or response.status_code != 200:
        return Explanation("Failed to upload photo", failed=True)
    if len(response.content) >= _HANGS_FROM:
        board.findings.append(("body-hang", f"vision answered {len(response.content)} bytes"))
        return Explanation("Failed to upload photo", failed=True)
    return Explanation(response.text)


async def upload_screen(board: Board, url: str) -> bool:
    """Upload the screen as a picture; return whether the server took it."""
    response = await _post(url, _form(board.screenshot, "screenshot.jpg", None), board.upload_headers)
    return response is not None and response.status_code == 200


async def _post(url: str, form: AsyncIterator[bytes], headers: dict[str, str]) -> httpx2.Response | None:
    sent = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", **headers}
    try:
        async with web(_SECONDS) as client:
            # A body that is iterated goes out in chunks without a length, as the board's does.
            return await client.post(url, content=form, headers=sent)
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return None


async def _form(picture: bytes, name: str, question: str | None) -> AsyncIterator[bytes]:
    for piece in form_pieces(picture, name, question):
        yield piece


def form_pieces(picture: bytes, name: str, question: str | None) -> Iterator[bytes]:
    """Yield the multipart form of an upload in the pieces that the board writes."""
    if question is not None:
        yield _head('name="question"') + question.encode("utf-8", "surrogateescape") + b"\r\n"
    yield _head(f'name="file"; filename="{name}"', "Content-Type: image/jpeg\r\n")
    for at in range(0, len(picture), _CHUNK):
        yield picture[at : at + _CHUNK]
    yield f"\r\n--{BOUNDARY}--\r\n".encode()


def _head(disposition: str, more: str = "") -> bytes:
    return f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n{more}\r\n".encode()
