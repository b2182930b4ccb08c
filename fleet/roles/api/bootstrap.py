"""`POST /xiaozhi/ota/`: a device's first request. The answer says where it connects, with which name and topic."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from fleet.adapters.redis.access.admissions import Decision
from fleet.core.admission import NoPlace
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.settings.tls import FIRMWARE_PORT
from fleet.roles.api.activation import ActivationService
from fleet.roles.api.body import read_body
from fleet.roles.api.clock import server_time
from fleet.roles.api.firmware import Firmware
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.requester import RequestedHost, Requester, read_requester, requested_host, require_client
from fleet.roles.api.settings import ApiSettings
from fleet.roles.api.throttle import Throttle, site_of
from fleet.wire import topics
from fleet.wire.bootstrap import (
    ActivationSection,
    BootstrapAnswer,
    BootstrapBody,
    MqttSection,
    clip,
    parse_body,
)
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import CredentialKeys

log = logging.getLogger(__name__)

PATHS = ("/xiaozhi/ota/", "/xiaozhi/ota")
LARGEST_BODY = 16 * 1024
"""Bytes; that of firmware has a few KB. Thousands of slow clients must fit into the memory of a small container."""
STORE_SECONDS = 1.0
"""While a device waits for the answer to its first request, it does nothing else."""
PLACE_SECONDS = 60
"""After this time a device without a place may ask again: places become free as devices connect, or after an hour."""

_NO_PLACE: Mapping[NoPlace, tuple[int, str]] = {
    "no place": (503, "too many new devices; try again later"),
    "no place for its address": (429, "too many new devices from this address; try again later"),
}


class Bootstrap:
    """Answers bootstrap requests.

    Firmware takes any status but 200 for a failure and then waits (ota.cc), so only devices that may
    not be served are refused.

    Args:
        settings: Public addresses, keep-alive, time zone, policy.
        keys: Derive each device's password, and have the list of revoked devices.
        activations: Decides which devices are served, and stores what they say of themselves.
        firmware: Offers images.
        throttle: Limits requests.
    """

    def __init__(
        self,
        settings: ApiSettings,
        keys: CredentialKeys,
        activations: ActivationService,
        firmware: Firmware,
        throttle: Throttle,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._activations = activations
        self._firmware = firmware
        self._throttle = throttle
        self.router = APIRouter()
        for path in PATHS:
            self.router.add_route(path, self.answer, methods=["POST"])

    async def answer(self, request: Request) -> Response:
        """Return credentials or an activation. The headers identify the device; the body only adds to them.

        Raises:
            HTTPException: 400 without a MAC, 403 for a device that is not served, 429 for one that asks too often or
                whose address asked with too many MACs that never connected, 503 when it cannot be decided, or when
                there are too many such MACs in all.
        """
        self._throttle.admit_address("bootstrap", request)
        who, where = read_requester(request), requested_host(request, self._settings)
        self._throttle.admit_device("bootstrap", request, who.mac)
        body = parse_body(await read_body(request, LARGEST_BODY))
        if who.mac in self._keys.revoked:
            log.warning("bootstrap refused", extra={"device": who.mac, "reason": "revoked"})
            await self._activations.record_refusal(who, "revoked")
            raise HTTPException(403, "the device is not admitted")
        require_client(who, self._settings)
        deadline = asyncio.get_running_loop().time() + STORE_SECONDS
        dialect = XIAOZHI if who.is_firmware or body.application.version else ""
        decision = await self._decide(who, site_of(request), dialect, self._fields(who, body, where), deadline)
        mqtt = firmware = activation = None
        if decision.verdict == "asked":
            self._throttle.admit_address("invitation", request)
            activation = await self._invite(who, deadline)
            await self._activations.record_refusal(who, "not bound")
        else:
            mqtt = self._credentials(who.mac, where.host, decision.generation)
            if decision.offer is not None and body.board.name in ("", who.board):
                firmware = self._firmware.offer(who, decision.offer, where.url)
        now = server_time(decision.timezone, self._settings.timezone, datetime.now(UTC))
        answer = BootstrapAnswer(mqtt=mqtt, server_time=now, firmware=firmware, activation=activation)
        seen = {"device": who.mac, "board": who.board, "firmware": who.firmware, "as": decision.verdict}
        log.info("bootstrap", extra=seen)
        return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")

    def _fields(self, who: Requester, body: BootstrapBody, where: RequestedHost) -> dict[str, str]:
        """Return the fields to store of a device that is served."""
        fields = {
            "host": where.stored,
            "kid": self._keys.ids[0],
            "board": who.board or body.board.type or body.board.name,
            "fw": who.firmware or body.application.version,
            "lang": who.language or body.language,
        }
        return {name: clip(text) for name, text in fields.items() if text}

    async def _decide(
        self, who: Requester, address: str, dialect: str, fields: Mapping[str, str], deadline: float
    ) -> Decision:
        """Return the decision about a device.

        Without Redis devices cannot be told apart. Under an open policy they need not be: a refusal would only make a
        device wait.
        """
        try:
            async with asyncio.timeout_at(deadline):
                decision = await self._activations.decide(who, address, dialect, fields)
        except (Unavailable, TimeoutError) as error:
            if self._settings.activation == "open":
                log.warning("device not stored", extra={"device": who.mac, "reason": _reason(error)})
                return Decision("admitted", 0, "")
            raise RefusedRequest("store away", 503, "try again later") from error
        if decision.verdict == "refused":
            log.warning("bootstrap refused", extra={"device": who.mac, "reason": "not on the list"})
            await self._activations.record_refusal(who, "not on the list")
            raise HTTPException(403, "the device is not admitted")
        if decision.verdict in ("no place", "no place for its address"):
            await self._make_wait(who, address, decision.verdict)
        return decision

    async def _make_wait(self, who: Requester, address: str, reason: NoPlace) -> None:
        log.warning("no place for a new device", extra={"device": who.mac, "address": address, "reason": reason})
        await self._activations.record_refusal(who, reason)
        raise HTTPException(*_NO_PLACE[reason], {"Retry-After": str(PLACE_SECONDS)})

    async def _invite(self, who: Requester, deadline: float) -> ActivationSection:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._activations.invite(who)
        except (Unavailable, Overloaded, TimeoutError) as error:
            log.warning("no activation", extra={"device": who.mac, "reason": _reason(error)})
            raise RefusedRequest("store away", 503, "try again later") from error

    def _credentials(self, mac: str, host: str, generation: int) -> MqttSection:
        credentials = self._keys.issue_to_device(mac, self._settings.activation, generation)
        port = self._settings.mqtt_port if self._settings.tls_cert is None else FIRMWARE_PORT
        return MqttSection(
            endpoint=self._settings.mqtt_public or f"{host}:{port}",
            client_id=credentials.client_id,
            username=credentials.username,
            password=credentials.password,
            publish_topic=topics.up_topic(mac),
            keepalive=self._settings.keepalive,
        )


def _reason(error: Exception) -> str:
    return str(error) or "no answer in time"
