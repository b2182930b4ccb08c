"""Open a session as a device does: log in with the password from bootstrap, send a hello, send audio."""

import json
from collections.abc import Mapping

from fleet.adapters.redis.devices.view import read_device_view
from fleet.core.finding import Finding, Findings, ok, problem, skipped
from fleet.operations.doctor.audio import reach
from fleet.operations.doctor.broker_addresses import broker_addresses, connect_first
from fleet.operations.doctor.hello_answer import read_hello_answer
from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire.identity import Credentials
from fleet.wire.mqtt.packets import Publish
from fleet.wire.topics import up_topic

HELLO_SECONDS = 10.0
"""Firmware waits so long for the answer (contract 3)."""

_HELLO = {
    "type": "hello",
    "version": 3,
    "transport": "udp",
    "audio_params": {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60},
}


async def examine(site: SiteUnderTest) -> Findings:
    who = await _credentials(site)
    if who is None:
        yield skipped("session.login", "the doctor's device has no password", "see api.bootstrap")
        return
    try:
        async with connect_first(await broker_addresses(site), who) as (probe, _, _):
            yield ok("session.login", "the broker accepts the password from bootstrap")
            async for finding in _converse(site, probe):
                yield finding
    except MqttFault as fault:
        yield _not_connected(site, fault)


async def _credentials(site: SiteUnderTest) -> Credentials | None:
    """Return the credentials from bootstrap, or the doctor's own for the same device."""
    mqtt = (await site.bootstrapped()).mqtt
    if mqtt is not None:
        return Credentials(mqtt.client_id, mqtt.username, mqtt.password)
    return site.device(0) if site.keys is not None and site.broker is not None else None


async def _converse(site: SiteUnderTest, probe: MqttProbe) -> Findings:
    mac = site.macs[0]
    await probe.publish(up_topic(mac), json.dumps(_HELLO).encode())
    answer = await probe.message(lambda message: _kind(message) == "hello", HELLO_SECONDS)
    hello_answer = read_hello_answer(answer.payload) if answer is not None else None
    if hello_answer is None:
        yield _unanswered(answer)
        return
    if hello_answer.refused:
        yield await _refused(site)
        return
    yield ok("session.hello", f"a hello is answered; audio goes to {hello_answer.host}:{hello_answer.port}")
    try:
        async for finding in reach(site, hello_answer):
            yield finding
    finally:
        await probe.publish(up_topic(mac), json.dumps({"type": "goodbye", "session_id": hello_answer.session}).encode())


def _kind(message: Publish) -> str:
    try:
        body = json.loads(message.payload)
    except ValueError:
        return ""
    return str(body.get("type")) if isinstance(body, Mapping) else ""


def _unanswered(answer: Publish | None) -> Finding:
    if answer is not None:
        return problem(
            "session.hello",
            "the answer to a hello has no address for audio",
            "Check FLEET_MQTT_PUBLIC: a server other than fleet answers",
        )
    advice = (
        "See redis.writes, roles.workers, broker.qos and broker.delivery. If those are ok, check that the workers have "
        "the same FLEET_MQTT_URL and FLEET_SHARDS; with FLEET_LOG_LEVEL=debug a worker logs each `message`"
    )
    return problem("session.hello", f"a hello is not answered within {HELLO_SECONDS:g} s", advice)


async def _refused(site: SiteUnderTest) -> Finding:
    trace = (await read_device_view(site.store, site.macs[0])).traces.get("refused") if site.store is not None else None
    why = trace.words if trace else "the worker's log has the reason (`hello refused`)"
    advice = {
        "no edge is ready": "Start `fleet edge`. One that is full (FLEET_EDGE_SESSIONS) or stopping takes no sessions",
        "no address for the audio is known": "Set FLEET_PUBLIC_HOST for the workers, or FLEET_UDP_PUBLIC for the edges",
        "the device is not admitted": "FLEET_REFUSED_DEVICES contains the doctor's device",
    }.get(why, "See the worker's log")
    return problem("session.hello", f"a hello is refused: {why}", advice)


def _not_connected(site: SiteUnderTest, fault: MqttFault) -> Finding:
    if fault.stage == "login":
        return problem(
            "session.login",
            f"the broker refuses the password from bootstrap: {fault}",
            "Give the api and the broker the same keys: FLEET_KEYS or FLEET_KEYS_FILE, and plugin_opt_keys_file",
        )
    if site.broker is not None:
        return skipped("session.login", str(fault), "see broker.door")
    advice = (
        "Set FLEET_MQTT_PUBLIC (else FLEET_PUBLIC_HOST) to an address that devices reach; check its TCP port and its "
        "certificate"
    )
    return problem("broker.door", f"devices cannot connect to the address from bootstrap: {fault}", advice)
