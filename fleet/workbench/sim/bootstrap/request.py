"""Bootstrap for many devices over few connections, and what follows from its answer."""

import json

import httpx2

from fleet.wire.topics import down_topic, up_topic
from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.expectation import Failed

SECONDS = 30.0
NONE = "null"
"""What servers send in place of a topic, because old firmware requires the key."""


async def ask(url: str, mac: str, profile: Profile, client: httpx2.AsyncClient | None = None) -> JsonObject:
    """Return what bootstrap answers to a device; a client of the caller's saves connections.

    Raises:
        Failed: It is away, or answers something else than a JSON object with status 200.
    """
    if client is None:
        async with web(SECONDS) as own:
            return await ask(url, mac, profile, own)
    identity = Identity.of(mac)
    try:
        response = await client.post(
            url, content=system_info(identity, profile).encode(), headers=headers(identity, profile)
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Failed(f"bootstrap: {error or type(error).__name__}") from error
    try:
        answer = json.loads(response.content)
    except ValueError:
        answer = None
    if response.status_code != 200 or not isinstance(answer, dict):
        raise Failed(f"bootstrap answered status {response.status_code}, {len(response.content)} bytes")
    return answer


def reply_topic(access: MqttAccess, mac: str) -> str:
    """Return the topic of messages to a device: from bootstrap, or from the known topic scheme; else ""."""
    if access.subscribe_topic not in ("", NONE):
        return access.subscribe_topic
    return down_topic(mac) if access.publish_topic == up_topic(mac) else ""
