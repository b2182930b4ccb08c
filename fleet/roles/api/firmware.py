"""Firmware: the offer at bootstrap, and the download (contract 1.5)."""

import logging
from collections import Counter

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

from fleet.adapters.files.firmware_images import FirmwareImages
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.registry import MOST_OFFERS, DeviceRegistry
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.requester import Requester
from fleet.roles.api.throttle import Throttle
from fleet.wire.bootstrap import FirmwareSection

log = logging.getLogger(__name__)

_PATH = "/xiaozhi/firmware"


class Firmware:
    """Offers images and sends them.

    Args:
        images: The firmware.
        store: Counts offers.
        throttle: Limits requests.
        counts: Counts offers that are withheld because the device got them before.
    """

    def __init__(self, images: FirmwareImages, store: Store, throttle: Throttle, counts: Counter[str]) -> None:
        self._images = images
        self._throttle = throttle
        self._counts = counts
        self._registry = DeviceRegistry(store)
        self.router = APIRouter()
        self.router.add_api_route(f"{_PATH}/{{board}}/{{name}}.bin", self.send, methods=["GET", "HEAD"])

    async def offer(self, who: Requester, body_board: str, url: str) -> FirmwareSection | None:
        """Return the firmware that a device should install now, if any.

        Call it only for a device that is served: each call counts as an offer. A device whose headers and body name
        different boards gets no offer. A device that got the same offer `MOST_OFFERS` times gets it no more: its
        upgrade has failed each time.

        Args:
            who: The device.
            body_board: The board's name in the request's body, or empty.
            url: URL of the api, as the device reaches it.

        Raises:
            Unavailable: Redis did not answer.
        """
        image = self._images.offer(who.board, who.running)
        if image is None or body_board not in ("", who.board):
            return None
        if await self._registry.count_offer(who.mac, who.client, image.name) > MOST_OFFERS:
            self._counts["firmware: offered before"] += 1
            log.warning("firmware is not offered again", extra={"device": who.mac, "version": image.name})
            return None
        log.info("firmware offered", extra={"device": who.mac, "board": who.board, "version": image.name})
        return FirmwareSection(
            version=image.name,
            url=f"{url}{_PATH}/{image.board}/{image.name}.bin",
            force=1 if self._images.is_forced(image) else None,
        )

    async def send(self, request: Request, board: str, name: str) -> FileResponse:
        """Send an image; only files that `images` lists are ever opened.

        Raises:
            RefusedRequest: There is no such image, or its file has changed (404); the client's address sends too many
                requests (429).
        """
        self._throttle.admit_address("firmware", request)
        image = self._images.find(board, name)
        if image is None or not image.is_unchanged():
            raise RefusedRequest("firmware: no such image", 404, "there is no such firmware")
        headers = {"ETag": f'"{image.sha256}"', "X-Checksum-Sha256": image.sha256}
        return FileResponse(image.path, media_type="application/octet-stream", headers=headers)
