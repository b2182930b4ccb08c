"""`POST /xiaozhi/ota/`: a device's first request, which decides where it connects, as whom, and on which topic."""

import asyncio
import logging
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from fleet.errors import Unavailable
from fleet.settings import Settings
from fleet.store.devices import Devices
from fleet.wire import topics
from fleet.wire.bootstrap import BootstrapAnswer, MqttSection, ServerTime, endpoint_host, parse_body
from fleet.wire.identity import Keys

log = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
DESCRIBE_SECONDS = 1.0
"""A device that waits at its first request does nothing else."""


class Bootstrap:
    """Answers bootstrap requests.

    Args:
        settings: Public addresses, keep-alive, time zone.
        keys: Derive each device's password.
        devices: Where it is kept what a device said of itself.
    """

    def __init__(self, settings: Settings, keys: Keys, devices: Devices) -> None:
        self._settings = settings
        self._keys = keys
        self._devices = devices
        self.router = APIRouter()
        for path in ("/xiaozhi/ota/", "/xiaozhi/ota"):
            self.router.add_api_route(path, self.answer, methods=["POST"])

    async def answer(self, request: Request) -> JSONResponse:
        """Return what the device needs; its identity comes from the headers, its body is best effort.

        Firmware takes anything but 200 for a failure and then waits, so only a request without a MAC is refused.
        """
        mac = topics.canonical_mac(request.headers.get("device-id", ""))
        if mac is None:
            return JSONResponse({"error": "the header Device-Id must hold the device's MAC"}, 400)
        host = self._settings.public_host or endpoint_host(request.headers.get("host", ""))
        if host is None:
            return JSONResponse({"error": "set FLEET_PUBLIC_HOST: devices cannot use the host of this URL"}, 400)
        await self._describe(mac, host, await _body(request))
        document = self._document(mac, host).model_dump(exclude_none=True)
        return JSONResponse(document)

    def _document(self, mac: str, host: str) -> BootstrapAnswer:
        credentials = self._keys.issue("device", mac)
        return BootstrapAnswer(
            mqtt=MqttSection(
                endpoint=self._settings.mqtt_public or f"{host}:{self._settings.mqtt_port}",
                client_id=credentials.client_id,
                username=credentials.username,
                password=credentials.password,
                publish_topic=topics.up_topic(mac),
                keepalive=self._settings.keepalive,
            ),
            server_time=ServerTime(
                timestamp=int(datetime.now(UTC).timestamp() * 1000),
                timezone_offset=self._settings.timezone_offset,
            ),
        )

    async def _describe(self, mac: str, host: str, body: bytes) -> None:
        told = parse_body(body)
        fields = {
            "host": host,
            "board": told.board.type or told.board.name,
            "fw": told.application.version,
            "lang": told.language,
        }
        try:
            async with asyncio.timeout(DESCRIBE_SECONDS):
                await self._devices.describe(mac, {name: value[:64] for name, value in fields.items() if value})
        except (Unavailable, TimeoutError) as error:
            # The device can connect all the same; refusing it would only make it wait.
            log.warning("device not written down", extra={"device": mac, "reason": str(error) or "no answer in time"})
        log.info("bootstrap", extra={"device": mac, "board": fields["board"], "firmware": fields["fw"]})


async def _body(request: Request) -> bytes:
    """Return the body's beginning; a longer one than any firmware sends is not read to its end."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            break
    return body[:LARGEST_BODY]
