"""`POST /vision/explain`: a device's photo and a question, answered by a model that sees (contract 6.1).

The answer goes to the chat model as the tool's result, as it is. A device waits 30 s for the status line, and hangs on
a body of 8 KB or more.
"""

import asyncio
import json
import logging
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fleet.adapters.redis.devices.devices import Devices
from fleet.core.text.phrases import PhotoPhrase, phrase
from fleet.ground.errors import ProviderError, Unavailable
from fleet.ground.tasks import provider_errors
from fleet.roles.api.photo import Upload, drain, read_upload
from fleet.roles.api.throttle import Throttle
from fleet.wire import camera
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import canonical_mac

if TYPE_CHECKING:
    from fleet.adapters.llm.vision import OpenAiVision

log = logging.getLogger(__name__)

MOST_AT_ONCE = 32
"""Uploads that are read or asked about at a time; more are refused politely."""
LARGEST_ANSWER = 6000
"""Bytes of the text as it stands in the answer."""
"""It cannot see."""

_TOO_OFTEN = "There were too many photos; try again in a moment."
_LOOKUP_SECONDS = 1.0
"""Longest wait for a device's language; without it the message is in English."""


class VisionRoute:
    """Answers uploads.

    Args:
        keys: Verify tokens.
        model: Describes photos; None when there is none.
        devices: Have the devices' languages.
        throttle: Limits requests.
        counts: Counts refusals.
    """

    def __init__(
        self,
        keys: CredentialKeys,
        model: "OpenAiVision | None",
        devices: Devices,
        throttle: Throttle,
        counts: Counter[str],
    ) -> None:
        self._keys = keys
        self._devices = devices
        self._model = model
        self._throttle = throttle
        self._counts = counts
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self.router = APIRouter()
        self.router.add_api_route("/vision/explain", self.answer, methods=["POST"])

    async def answer(self, request: Request) -> JSONResponse:
        """Return a description of the photo. A failure has status 200 too: firmware passes on only such a body."""
        self._throttle.admit_address("photo", request)
        mac = self._authenticate(request)
        if mac is None:
            self._counts["photo: token"] += 1
            await drain(request)
            return _refusal(401, "the token is wrong, over, or another device's")
        if wait := self._throttle.admit_photo(mac):
            self._counts["device: photo"] += 1
            await drain(request)
            return _refusal(429, _TOO_OFTEN, {"Retry-After": wait})
        if self._places.locked():
            self._counts["photo: busy"] += 1
            await drain(request)
            return await self._apologise(mac, "photos_busy")
        async with self._places:
            try:
                upload = await read_upload(request)
            except HTTPException as error:
                self._counts["photo: upload"] += 1
                log.warning("photo refused", extra={"device": mac, "reason": error.detail})
                await drain(request)
                return _refusal(error.status_code, error.detail)
            return await self._explain(mac, upload)

    def _authenticate(self, request: Request) -> str | None:
        """Return the MAC of the device that uploads, or None when its token is wrong."""
        mac = canonical_mac(request.headers.get("device-id", "")[:64])
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        now = datetime.now(UTC).timestamp()
        if mac is None or scheme.lower() != "bearer" or not camera.is_valid(self._keys, token.strip(), mac, now):
            log.warning("photo refused", extra={"device": mac, "reason": "token"})
            return None
        return mac

    async def _explain(self, mac: str, upload: Upload) -> JSONResponse:
        if self._model is None:
            self._counts["photo: no model"] += 1
            return await self._apologise(mac, "no_vision")
        begun = asyncio.get_running_loop().time()
        try:
            with provider_errors("vision"):
                text = await self._model.explain(upload.jpeg, upload.question)
        except ProviderError as error:
            self._counts["photo: model"] += 1
            log.warning("vision failed", extra={"device": mac, "reason": str(error)})
            return await self._apologise(mac, "photo_failed")
        seconds = round(asyncio.get_running_loop().time() - begun, 3)
        asked = {"question": upload.question, "answer": text}
        log.info("photo explained", extra={"device": mac, "bytes": len(upload.jpeg), "seconds": seconds, "pii": asked})
        return JSONResponse({"success": True, "response": clip(text)})

    async def _apologise(self, mac: str, failure: PhotoPhrase) -> JSONResponse:
        """Return the reason in the device's language, with a status whose body firmware passes on."""
        language = ""
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(_LOOKUP_SECONDS):
                language = (await self._devices.read(mac)).language
        return _refusal(200, phrase(failure, language[:2].lower()))


def clip(text: str) -> str:
    """Return as much of a text as a device can read."""
    while (size := len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))) > LARGEST_ANSWER:
        text = text[: max(1, len(text) * LARGEST_ANSWER // size - 1)]
    return text.encode("utf-8", "replace").decode()


def _refusal(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"success": False, "message": message}, status, headers)
