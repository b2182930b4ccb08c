"""Bootstrap: the device's first request, and what it stores of the answer (contract 1)."""

import asyncio
import json
from dataclasses import dataclass

import httpx2

from fleet.ground.errors import Unavailable
from fleet.wire.firmware import parse_version
from fleet.workbench.sim.bootstrap.activation import Activation, demanded
from fleet.workbench.sim.bootstrap.ota_rules import check_answer, check_response
from fleet.workbench.sim.messages.message import JsonObject, member, number, text
from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.journal import Journal

DEFAULT_KEEPALIVE = 240


@dataclass(frozen=True, slots=True)
class MqttAccess:
    """The stored MQTT section; the device takes the strings as they are."""

    endpoint: str
    client_id: str
    username: str
    password: str
    publish_topic: str
    keepalive: int
    subscribe_topic: str = ""


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
        self._reason = self._code = ""
        self.firmware = ""
        """Where the firmware is that the answer tells the device to install; empty if it tells none."""

    async def fetch(self) -> MqttAccess:
        """Return the MQTT section, after as many tries as firmware makes.

        Raises:
            Unavailable: No try brought one.
        """
        while True:
            answer = await self._ask()
            challenge = demanded(answer)
            access = read_mqtt(member(answer, "mqtt"))
            if challenge is None and access is not None:
                self._note(access)
                self.firmware = upgrade_of(member(answer, "firmware"), self._profile.version)
                return access
            if challenge is None:
                raise Unavailable(f"bootstrap at {self._url} failed: no usable mqtt section")
            self._note_code(text(member(answer, "activation"), "code") or "")
            await Activation(self._url, self._identity, self._profile, self._journal).run(challenge)

    async def _ask(self) -> JsonObject:
        """Return the answer, after as many tries as firmware makes."""
        timing = self._profile.timing
        pause = timing.ota_retry
        for left in range(timing.ota_tries - 1, -1, -1):
            answer = await self._try()
            if answer:
                return answer
            if left:
                await asyncio.sleep(pause)
                pause *= 2
        raise Unavailable(f"bootstrap at {self._url} failed: {self._reason}")

    async def _try(self) -> JsonObject | None:
        try:
            response = await self._post()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._fail(str(error) or type(error).__name__)
            return None
        body, limit = response.content, self._profile.body_limit
        self._journal.judge(check_response(response.status_code, self._seen(response), body))
        if limit is not None and len(body) >= limit:
            self._journal.violate("body-hang", f"bootstrap answered {len(body)} bytes")
            self._fail(f"hangs on {len(body)} bytes")
            return None
        if response.status_code != 200:
            self._fail(f"status {response.status_code}")
            return None
        return self._read(body)

    def _note_code(self, code: str) -> None:
        """Note a code when it is shown first."""
        if code and code != self._code:
            self._code = code
            self._journal.note("activation code", code=code)

    def _note(self, access: MqttAccess) -> None:
        topic, keepalive = access.publish_topic, access.keepalive
        self._journal.note("ota", endpoint=access.endpoint, topic=topic, keepalive=keepalive)

    def _seen(self, response: httpx2.Response) -> dict[str, str]:
        """Return the headers in lower case, without those whose capitals a modem does not know."""
        known = (name.decode("ascii", "replace") for name, _ in response.headers.raw)
        return {name.lower(): response.headers[name] for name in known if not self._profile.cellular or name.istitle()}

    def _fail(self, reason: str) -> None:
        self._reason = reason
        self._journal.note("ota failed", reason=reason)

    async def _post(self) -> httpx2.Response:
        body = system_info(self._identity, self._profile).encode("utf-8", "surrogateescape")
        async with web(self._profile.timing.ota_read) as client:
            return await client.post(self._url, content=body, headers=headers(self._identity, self._profile))

    def _read(self, body: bytes) -> JsonObject | None:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._journal.violate("ota-json", f"{len(body)} bytes that are no JSON object")
            self._fail("no JSON object")
            return None
        self._journal.judge(check_answer(answer, self._profile.version))
        return answer


def upgrade_of(section: JsonObject, running: str) -> str:
    """Return where the device downloads firmware: a higher version than it runs, or any with `force` (ota.cc)."""
    version, url = text(section, "version") or "", text(section, "url") or ""
    offered, own = parse_version(version), parse_version(running)
    wanted = number(section.get("force")) == 1 or (offered is not None and own is not None and offered > own)
    return url if wanted else ""


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
        stored("subscribe_topic"),
    )
