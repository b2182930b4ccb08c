"""Activation: the device shows a code and asks until its user has bound it (contract 1.4)."""

import asyncio
import hashlib
import hmac
import json

import httpx2
from pydantic import JsonValue

from fleet.workbench.sim.messages.message import JsonObject, member, text
from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.profiles.identity import Identity, headers
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.journal import Journal

BOUND, WAITING = 200, 202


def demanded(answer: JsonObject) -> str | None:
    """Return the challenge of a bootstrap answer that demands activation (empty if it gives none), else None."""
    section = member(answer, "activation")
    code, challenge = text(section, "code"), text(section, "challenge")
    return None if code is None and challenge is None else challenge or ""


class Activation:
    """Asks up to ten times.

    Args:
        url: Of bootstrap.
        identity: Who asks.
        profile: Which build asks.
        journal: Takes the steps.
    """

    def __init__(self, url: str, identity: Identity, profile: Profile, journal: Journal) -> None:
        self._url = url.removesuffix("/") + "/activate"
        self._identity = identity
        self._profile = profile
        self._journal = journal

    async def run(self, challenge: str) -> bool:
        """Ask until the device is bound or the tries are used up; without a challenge it only waits."""
        timing = self._profile.timing
        for _ in range(timing.activate_tries):
            status = await self._ask(challenge) if challenge else 0
            self._journal.note("activation", status=status)
            if status == BOUND:
                return True
            await asyncio.sleep(timing.activate_soon if status == WAITING else timing.activate_later)
        return False

    async def _ask(self, challenge: str) -> int:
        content = json.dumps(proof(self._identity, self._profile, challenge), separators=(",", ":")).encode()
        try:
            async with web(self._profile.timing.ota_read) as client:
                sent = headers(self._identity, self._profile)
                return (await client.post(self._url, content=content, headers=sent)).status_code
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return 0


def proof(identity: Identity, profile: Profile, challenge: str) -> dict[str, JsonValue]:
    """Return the request's body: empty without a serial number, else the challenge signed with the burnt-in key."""
    if not identity.serial:
        return {}
    signed = hmac.new(identity.key, challenge.encode(), hashlib.sha256).hexdigest() if identity.key else ""
    flat: dict[str, JsonValue] = {
        "algorithm": "hmac-sha256",
        "serial_number": identity.serial,
        "challenge": challenge,
        "hmac": signed,
    }
    return {"Payload": flat} if profile.is_py_xiaozhi else flat
