"""One HTTP request of a device and its whole answer, headers as they were spelled."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpx2

from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.records import clock
from fleet.workbench.sim.tools.vision import BOUNDARY, form_pieces

SECONDS = 60.0
"""Longer than any firmware waits: a check says how late an answer was."""

_CHUNK = 2048
_MOST_CHUNKS = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `seconds` from the request's begin to the answer's end, `names` of the headers as they came."""

    status: int
    headers: Mapping[str, str]
    names: frozenset[str]
    body: bytes
    seconds: float

    @property
    def json(self) -> JsonObject:
        """The JSON object in the body.

        Raises:
            Failed: There is none.
        """
        try:
            found = json.loads(self.body)
        except ValueError:
            found = None
        require(isinstance(found, dict), f"status {self.status} with {len(self.body)} bytes that are no JSON object")
        return dict(found)


async def post(url: str, headers: Mapping[str, str], content: bytes | AsyncIterator[bytes]) -> Reply:
    """Send a request on a connection of its own, as firmware does.

    Raises:
        Failed: It was not answered.
    """
    return await _exchange("POST", url, headers, content)


async def get(url: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Fetch something.

    Raises:
        Failed: It was not answered.
    """
    return await _exchange("GET", url, headers or {}, b"")


async def upload(
    url: str, headers: Mapping[str, str], photo: bytes, question: str | None, *, chunked: bool = True
) -> Reply:
    """Upload a photo as a camera does: firmware in chunks without a length, py-xiaozhi with one.

    Raises:
        Failed: It was not answered.
    """
    form = b"".join(form_pieces(photo, "camera.jpg", question))
    sent = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", **headers}
    return await post(url, sent, _pieces(form) if chunked else form)


async def _pieces(form: bytes) -> AsyncIterator[bytes]:
    # So many at most: a suite that cuts 5 MB into pieces of 2 KB measures itself.
    size = max(_CHUNK, len(form) // _MOST_CHUNKS)
    for at in range(0, len(form), size):
        yield form[at : at + size]


async def _exchange(method: str, url: str, headers: Mapping[str, str], content: bytes | AsyncIterator[bytes]) -> Reply:
    begun = clock.now()
    try:
        async with web(SECONDS) as client:
            answer = await client.request(method, url, headers=dict(headers), content=content)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Failed(f"{url}: {str(error) or type(error).__name__} after {clock.now() - begun:.1f} s") from error
    names = frozenset(name.decode("latin-1") for name, _ in answer.headers.raw)
    return Reply(answer.status_code, answer.headers, names, answer.content, clock.now() - begun)
