"""How devices of a benchmark sign in: at fleet's roles, at `fleet up`, and at another gateway."""

import asyncio
import base64
import hashlib
import hmac
import uuid
from typing import Protocol

from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.ground.settings import Settings
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import CredentialKeys, Credentials
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.bootstrap.raw_request import ask, request
from fleet.workbench.sim.profiles.profile import find_profile


class Logins(Protocol):
    """The broker's `port`, the `topic` to which devices publish (empty: fleet's own), and their credentials."""

    port: int
    topic: str

    async def introduce(self, mac: str) -> Credentials:
        """Make a device known as bootstrap would, and return its credentials."""


class StoreLogins:
    """Of roles that run without an api: writes into Redis what bootstrap notes of firmware.

    Other devices are asked for their tools only at their first hello.
    """

    topic = ""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.port = parse_mqtt_url(settings.mqtt_url or "").port
        self._keys, self._store = _keys(settings), store

    async def introduce(self, mac: str) -> Credentials:
        await self._store.client.hset(self._store.keys.device(mac), "dialect", XIAOZHI)
        return self._keys.issue("device", mac, policy="first", generation=1)


class BootstrapLogins:
    """Of `fleet up` that serves everybody: sends each device's bootstrap request."""

    topic = ""

    def __init__(self, settings: Settings) -> None:
        self.port, self._http = settings.mqtt_port, settings.http_port
        self._keys, self._profile = _keys(settings), find_profile("P1")

    async def introduce(self, mac: str) -> Credentials:
        content = request(mac, self._profile, f"{LOOPBACK}:{self._http}", "/xiaozhi/ota/")
        answer = await ask(LOOPBACK, self._http, content, asyncio.get_running_loop().time())
        if answer.status != "200":
            raise Unavailable(f"bootstrap of a device was answered with {answer.status}")
        return self._keys.issue("device", mac, policy="open")


class PeerLogins:
    """Of the gateway xinnan-tech/xiaozhi-mqtt-gateway, whose broker has no bootstrap.

    The password is the base64 HMAC-SHA256 of `CLIENT_ID|USERNAME` under its MQTT_SIGNATURE_KEY (its
    utils/mqtt_config_v2.js); the user name is base64 of a JSON object.
    """

    topic = "device-server"

    def __init__(self, port: int, key: str) -> None:
        self.port, self._key = port, key.encode()

    async def introduce(self, mac: str) -> Credentials:
        client = f"GID_bench@@@{mac.replace(':', '_')}@@@{uuid.uuid5(uuid.NAMESPACE_OID, mac)}"
        username = base64.b64encode(b'{"ip":"127.0.0.1"}').decode()
        signed = hmac.digest(self._key, f"{client}|{username}".encode(), hashlib.sha256)
        return Credentials(client, username, base64.b64encode(signed).decode())


def _keys(settings: Settings) -> CredentialKeys:
    return CredentialKeys(settings.keys.get_secret_value() if settings.keys else "")
