"""`POST /xiaozhi/ota/`: a device's first request, which decides where it connects, as whom, and on which topic."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fleet.adapters.redis.access.admissions import Decision
from fleet.core.standing import Lack
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.settings import Settings
from fleet.ground.settings.tls import FIRMWARE_PORT
from fleet.roles.api.activation import ActivationService
from fleet.roles.api.body import read_body
from fleet.roles.api.clock import server_time
from fleet.roles.api.firmware import Firmware
from fleet.roles.api.refusals import TurnedAway
from fleet.roles.api.requester import RequestedHost, Requester, place, require_client, visitor
from fleet.roles.api.throttle import Throttle, site_of
from fleet.wire import topics
from fleet.wire.bootstrap import (
    ActivationSection,
    BootstrapAnswer,
    BootstrapBody,
    FirmwareSection,
    MqttSection,
    clip,
    parse_body,
)
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import CredentialKeys

log = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
STORE_SECONDS = 1.0
"""A device that waits at its first request does nothing else."""
PLACE_SECONDS = 60
"""When somebody may ask again for whom there is no place: places come back as devices connect, or after their hour."""

_LACKS: Mapping[Lack, tuple[int, str]] = {
    "no place": (503, "too many new devices; try again later"),
    "no place for its address": (429, "too many new devices from this address; try again later"),
}


class Bootstrap:
    """Answers bootstrap requests.

    Firmware takes anything but 200 for a failure and then waits, so only who is not to be served is refused.

    Args:
        settings: Public addresses, keep-alive, time zone, policy.
        keys: Derive each device's password, and know who is revoked.
        desk: Decides who is served, and writes down what a device said of itself.
        firmware: What devices are to install.
        throttle: Limits how often somebody asks.
    """

    def __init__(
        self, settings: Settings, keys: CredentialKeys, desk: ActivationService, firmware: Firmware, throttle: Throttle
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._desk = desk
        self._firmware = firmware
        self._throttle = throttle
        self.router = APIRouter()
        for path in ("/xiaozhi/ota/", "/xiaozhi/ota"):
            self.router.add_route(path, self.answer, methods=["POST"])

    async def answer(self, request: Request) -> JSONResponse:
        """Return what the device needs; its identity comes from the headers, its body is best effort.

        Raises:
            HTTPException: 400 without a MAC, 403 for a device that is not served, 429 for one that asks too often or
                whose address asked with too many MACs that never connected, 503 when it cannot be decided, or when
                there are too many such MACs in all.
        """
        self._throttle.admit_address("bootstrap", request)
        who, where = visitor(request), place(request, self._settings)
        self._throttle.admit_device("bootstrap", request, who.mac)
        told = parse_body(await read_body(request, LARGEST_BODY))
        if who.mac in self._keys.revoked:
            log.warning("bootstrap refused", extra={"device": who.mac, "reason": "revoked"})
            await self._desk.turn_away(who, "revoked")
            raise HTTPException(403, "the device is not admitted")
        require_client(who, self._settings)
        deadline = asyncio.get_running_loop().time() + STORE_SECONDS
        dialect = XIAOZHI if who.is_firmware or told.application.version else ""
        decision = await self._decide(who, site_of(request), dialect, self._fields(who, told, where), deadline)
        mqtt = firmware = activation = None
        if decision.verdict == "asked":
            self._throttle.admit_address("invitation", request)
            activation = await self._invite(who, deadline)
            await self._desk.turn_away(who, "not bound")
        else:
            mqtt = self._credentials(who.mac, where.host, decision.generation)
            firmware = await self._offer(who, told, where.url, deadline)
        now = server_time(decision.timezone, self._settings.timezone_offset, datetime.now(UTC))
        answer = BootstrapAnswer(mqtt=mqtt, server_time=now, firmware=firmware, activation=activation)
        seen = {"device": who.mac, "board": who.board, "firmware": who.firmware, "as": decision.verdict}
        log.info("bootstrap", extra=seen)
        return JSONResponse(answer.model_dump(exclude_none=True))

    def _fields(self, who: Requester, told: BootstrapBody, where: RequestedHost) -> dict[str, str]:
        """Return what is written down of a device that is served."""
        fields = {
            "host": where.written,
            "kid": self._keys.ids[0],
            "board": who.board or told.board.type or told.board.name,
            "fw": who.firmware or told.application.version,
            "lang": who.language or told.language,
        }
        return {name: clip(text) for name, text in fields.items() if text}

    async def _decide(
        self, who: Requester, address: str, dialect: str, fields: Mapping[str, str], deadline: float
    ) -> Decision:
        """Return what is decided about a visitor.

        Without Redis nobody is told from another, but under an open policy nobody is anyway: refusing a device would
        only make it wait.
        """
        try:
            async with asyncio.timeout_at(deadline):
                decision = await self._desk.decide(who, address, dialect, fields)
        except (Unavailable, TimeoutError) as error:
            if self._settings.activation == "open":
                log.warning("device not written down", extra={"device": who.mac, "reason": _reason(error)})
                return Decision("admitted", 0, "")
            raise TurnedAway("store away", 503, "try again later") from error
        if decision.verdict == "refused":
            log.warning("bootstrap refused", extra={"device": who.mac, "reason": "not on the list"})
            await self._desk.turn_away(who, "not on the list")
            raise HTTPException(403, "the device is not admitted")
        if decision.verdict in ("no place", "no place for its address"):
            await self._make_wait(who, address, decision.verdict)
        return decision

    async def _make_wait(self, who: Requester, address: str, lack: Lack) -> None:
        log.warning("no place for a new device", extra={"device": who.mac, "address": address, "reason": lack})
        await self._desk.turn_away(who, lack)
        raise HTTPException(*_LACKS[lack], {"Retry-After": str(PLACE_SECONDS)})

    async def _invite(self, who: Requester, deadline: float) -> ActivationSection:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._desk.invite(who)
        except (Unavailable, Overloaded, TimeoutError) as error:
            log.warning("no activation", extra={"device": who.mac, "reason": _reason(error)})
            raise TurnedAway("store away", 503, "try again later") from error

    def _credentials(self, mac: str, host: str, generation: int) -> MqttSection:
        # Under an open policy a generation is given only where another policy cut earlier passwords: it would not count
        # without one.
        policy = "first" if self._settings.activation == "open" and generation else self._settings.activation
        credentials = self._keys.issue("device", mac, policy=policy, generation=generation)
        port = self._settings.mqtt_port if self._settings.tls_cert is None else FIRMWARE_PORT
        return MqttSection(
            endpoint=self._settings.mqtt_public or f"{host}:{port}",
            client_id=credentials.client_id,
            username=credentials.username,
            password=credentials.password,
            publish_topic=topics.up_topic(mac),
            keepalive=self._settings.keepalive,
        )

    async def _offer(self, who: Requester, told: BootstrapBody, url: str, deadline: float) -> FirmwareSection | None:
        """Return what the device should install; without Redis nothing."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._firmware.offer(who, told.board.name, url)
        except (Unavailable, TimeoutError) as error:
            log.warning("no firmware offered", extra={"device": who.mac, "reason": _reason(error)})
            return None


def _reason(error: Exception) -> str:
    return str(error) or "no answer in time"
