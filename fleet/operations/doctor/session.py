"""The start of a conversation, as a device does it: log in with bootstrap's password, say hello, send audio."""

import json
from collections.abc import Mapping

from fleet.adapters.redis.devices.view import read_device_view
from fleet.operations.doctor.audio import reach
from fleet.operations.doctor.broker_addresses import broker_addresses, connect_first
from fleet.operations.doctor.finding import Finding, Findings, ok, problem, skipped
from fleet.operations.doctor.hello_answer import read_hello_answer
from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire.identity import Credentials
from fleet.wire.mqtt.packets import Publish
from fleet.wire.topics import up_topic

HELLO_SECONDS = 10.0
"""What firmware waits."""

_HELLO = {
    "type": "hello",
    "version": 3,
    "transport": "udp",
    "audio_params": {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60},
}


async def examine(site: SiteUnderTest) -> Findings:
    who = await _credentials(site)
    if who is None:
        yield skipped("session.login", "nobody gave the doctor's device a password", "see api.bootstrap")
        return
    try:
        async with connect_first(await broker_addresses(site), who) as (probe, _, _):
            yield ok("session.login", "a device comes in with bootstrap's password")
            async for finding in _converse(site, probe):
                yield finding
    except MqttFault as fault:
        yield _outside(site, fault)


async def _credentials(site: SiteUnderTest) -> Credentials | None:
    """Return the credentials that bootstrap gave, or equal ones made here."""
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
    yield ok("session.hello", f"a hello is answered, with audio at {hello_answer.host}:{hello_answer.port}")
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
        return problem("session.hello", "the answer to a hello names no audio", "Another server than fleet answers")
    advice = (
        "See roles.workers, broker.qos and broker.delivery. If those are well, the workers hear another broker "
        "(their FLEET_MQTT_URL) or have another FLEET_SHARDS; a worker's log shows `message` at FLEET_LOG_LEVEL=debug"
    )
    return problem("session.hello", f"nobody answers a hello within {HELLO_SECONDS:g} s", advice)


async def _refused(site: SiteUnderTest) -> Finding:
    trace = (await read_device_view(site.store, site.macs[0])).traces.get("refused") if site.store is not None else None
    why = trace.words if trace else "the worker's log says why: `hello refused`"
    advice = {
        "no edge is ready": "Start `fleet edge`; a full one (FLEET_EDGE_SESSIONS) and one that ends take no sessions",
        "no address for the audio is known": "Set FLEET_PUBLIC_HOST for the workers, or FLEET_UDP_PUBLIC for the edges",
        "the device is not admitted": "FLEET_REFUSED_DEVICES names it",
    }.get(why, "The worker's log says more")
    return problem("session.hello", f"a hello is refused: {why}", advice)


def _outside(site: SiteUnderTest, fault: MqttFault) -> Finding:
    if fault.stage == "login":
        return problem(
            "session.login",
            f"the broker refuses the password that bootstrap gave: {fault}",
            "The api and the broker must have the same keys: FLEET_KEYS or FLEET_KEYS_FILE, and plugin_opt_keys_file",
        )
    if site.broker is not None:
        return skipped("session.login", str(fault), "see broker.door")
    advice = (
        "FLEET_MQTT_PUBLIC (else FLEET_PUBLIC_HOST) must name what devices reach; is its TCP port open, its TLS valid?"
    )
    return problem("broker.door", f"where devices are sent nobody lets them in: {fault}", advice)
