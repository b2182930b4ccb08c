"""Bootstrap: the device's first request, and what it stores of the answer (contract 1)."""

import asyncio
import json
import uuid
from dataclasses import dataclass

import httpx2

from fleet.errors import Unavailable
from fleet.sim.journal import Journal
from fleet.sim.message import JsonObject, member, number
from fleet.sim.ota_rules import check_answer, check_response
from fleet.sim.profile import Profile

HANGS_FROM = 8192
"""Bytes of body that dead-lock the HTTP client of Wi-Fi boards."""
DEFAULT_KEEPALIVE = 240


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells this device from others: its canonical MAC, and a UUID made at first boot."""

    mac: str
    client: str
    ssid: str = "home"

    @classmethod
    def of(cls, mac: str) -> "Identity":
        """Return an identity whose UUID follows from the MAC, so that it is kept over restarts."""
        return cls(mac, str(uuid.uuid5(uuid.NAMESPACE_OID, mac)))


@dataclass(frozen=True, slots=True)
class MqttAccess:
    """The stored MQTT section; the device takes the strings as they are."""

    endpoint: str
    client_id: str
    username: str
    password: str
    publish_topic: str
    keepalive: int


def headers(identity: Identity, profile: Profile) -> dict[str, str]:
    return {
        "Activation-Version": "1",
        "Device-Id": identity.mac,
        "Client-Id": identity.client,
        "User-Agent": f"{profile.board}/{profile.version}",
        "Accept-Language": profile.language,
        "Content-Type": "application/json",
        "Connection": "close",
    }


def system_info(identity: Identity, profile: Profile) -> str:
    """Return the request's body: put together by hand, the SSID as it is, as firmware does."""
    front = {
        "version": 2,
        "language": profile.language,
        "flash_size": 16_777_216,
        "minimum_free_heap_size": "7952340",
        "mac_address": identity.mac,
        "uuid": identity.client,
        "chip_model_name": profile.chip,
        "chip_info": {"model": 9, "cores": 2, "revision": 2, "features": 18},
        "application": {
            "name": "xiaozhi",
            "version": profile.version,
            "compile_time": "Aug  8 2026T10:00:00Z",
            "idf_version": "v5.5.2",
            "elf_sha256": "6b1d0f4a",
        },
        "partition_table": [
            {"label": "nvs", "type": 1, "subtype": 2, "address": 36_864, "size": 16_384},
            {"label": "ota_0", "type": 0, "subtype": 16, "address": 131_072, "size": 4_128_768},
        ],
        "ota": {"label": "ota_0"},
        "display": {"monochrome": False, "width": 240, "height": 240},
    }
    board = (
        f'{{"type":"{profile.board_type}","name":"{profile.board}","ssid":"{identity.ssid}",'
        f'"rssi":-52,"channel":6,"ip":"192.168.1.77","mac":"{identity.mac}"}}'
    )
    return f'{json.dumps(front, separators=(",", ":"))[:-1]},"board":{board}}}'


class Bootstrap:
    """Asks for the MQTT section as a booting device does.

    Args:
        url: Where to.
        identity: Who asks.
        profile: Which build asks.
        journal: Takes the steps and breaches.
    """

    def __init__(self, url: str, identity: Identity, profile: Profile, journal: Journal) -> None:
        self._url = url
        self._identity = identity
        self._profile = profile
        self._journal = journal
        self._reason = ""

    async def fetch(self) -> MqttAccess:
        """Return the MQTT section, after as many tries as firmware makes.

        Raises:
            Unavailable: No try brought one.
        """
        timing = self._profile.timing
        pause = timing.ota_retry
        for left in range(timing.ota_tries - 1, -1, -1):
            access = await self._try()
            if access:
                return access
            if left:
                await asyncio.sleep(pause)
                pause *= 2
        raise Unavailable(f"bootstrap at {self._url} failed: {self._reason}")

    async def _try(self) -> MqttAccess | None:
        try:
            response = await self._post()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._fail(str(error) or type(error).__name__)
            return None
        body = response.content
        self._journal.judge(check_response(response.status_code, dict(response.headers), body))
        if response.status_code != 200 or len(body) >= HANGS_FROM:
            self._fail(f"status {response.status_code}, {len(body)} bytes")
            return None
        return self._read(body)

    def _fail(self, reason: str) -> None:
        self._reason = reason
        self._journal.note("ota failed", reason=reason)

    async def _post(self) -> httpx2.Response:
        body = system_info(self._identity, self._profile).encode()
        async with httpx2.AsyncClient(
            timeout=self._profile.timing.ota_read, follow_redirects=False, trust_env=False
        ) as client:
            return await client.post(self._url, content=body, headers=headers(self._identity, self._profile))

    def _read(self, body: bytes) -> MqttAccess | None:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._journal.violate("ota-json", f"{len(body)} bytes that are no JSON object")
            self._fail("no JSON object")
            return None
        self._journal.judge(check_answer(answer, self._profile.version))
        access = read_mqtt(member(answer, "mqtt"))
        if access is None:
            self._fail("no usable mqtt section")
            return None
        self._journal.note("ota", endpoint=access.endpoint, topic=access.publish_topic, keepalive=access.keepalive)
        return access


def read_mqtt(section: JsonObject) -> MqttAccess | None:
    """Return what the device stores of a section, or None when it could not connect with it."""

    def stored(name: str) -> str:
        value = section.get(name)
        return value if isinstance(value, str) else ""

    endpoint = stored("endpoint")
    _, _, port = endpoint.partition(":")
    if not endpoint or (port and not port.isdigit()):
        return None
    keepalive = number(section.get("keepalive"))
    return MqttAccess(
        endpoint,
        stored("client_id"),
        stored("username"),
        stored("password"),
        stored("publish_topic"),
        int(keepalive) if keepalive else DEFAULT_KEEPALIVE,
    )
