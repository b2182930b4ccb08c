"""Firmware: the offer at bootstrap, and the downloads of devices (contract 1.5)."""

import asyncio
import logging

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

from fleet.adapters.files.image_store import ImageStore
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.offers import Offers
from fleet.ground.errors import Unavailable
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.requester import Requester
from fleet.roles.api.settings import ApiSettings
from fleet.roles.api.throttle import Throttle
from fleet.wire.bootstrap import FirmwareSection
from fleet.wire.firmware_offer import FirmwareOffer, offer_name, read_offer_name

log = logging.getLogger(__name__)

PATH = "/xiaozhi/firmware"
STORE_SECONDS = 2.0


class Firmware:
    """Says where devices download what jobs offer them, and sends it.

    Args:
        settings: Where the files are, and where devices download firmware from.
        store: Has the offers.
        throttle: Limits requests.
    """

    def __init__(self, settings: ApiSettings, store: Store, throttle: Throttle) -> None:
        self._images = ImageStore(settings.firmware_dir or settings.data_dir / "firmware")
        self._elsewhere, self._throttle, self._offers = settings.firmware_url, throttle, Offers(store)
        self.router = APIRouter()
        self.router.add_api_route(f"{PATH}/{{name}}.bin", self.send, methods=["GET", "HEAD"])

    def offer(self, who: Requester, offer: FirmwareOffer, url: str) -> FirmwareSection:
        """Return what a device is to install.

        Args:
            who: The device.
            offer: For it.
            url: URL of the api, as the device reaches it.
        """
        log.info("firmware offered", extra={"device": who.mac, "board": who.board, "offer": offer.id})
        name = offer_name(who.mac, offer)
        there = f"{self._elsewhere}/{offer.file}.bin?offer={name}" if self._elsewhere else f"{url}{PATH}/{name}.bin"
        return FirmwareSection(version=offer.version, url=there, force=1 if offer.force else None)

    async def send(self, request: Request, name: str) -> FileResponse:
        """Send what a device was offered, and note that it is taken.

        Raises:
            RefusedRequest: The device has no such offer any more, or the file is gone or damaged (404); the client's
                address sends too many requests (429); Redis does not answer (503).
        """
        self._throttle.admit_address("firmware", request)
        named = read_offer_name(name)
        try:
            async with asyncio.timeout(STORE_SECONDS):
                offer = None if named is None else await self._offers.take(*named)
        except (Unavailable, TimeoutError) as error:
            raise RefusedRequest("store away", 503, "try again later") from error
        path = None if offer is None else await asyncio.to_thread(self._images.path, offer.file)
        if offer is None or path is None:
            raise RefusedRequest("firmware: no such image", 404, "there is no such firmware")
        headers = {"ETag": f'"{offer.file}"', "X-Checksum-Sha256": offer.file}
        return FileResponse(path, media_type="application/octet-stream", headers=headers)
