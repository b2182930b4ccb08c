"""Check the broker: is it reachable, does it check passwords, does it deliver to devices without a subscription?"""

from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from fleet.core.finding import Finding, Findings, judge, ok, problem, skipped
from fleet.operations.doctor.broker_addresses import BrokerAddress, broker_addresses, connect_first
from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.passwords import examine_passwords
from fleet.operations.doctor.probe_message import equal_to, new_probe_message
from fleet.operations.doctor.site import SiteUnderTest
from fleet.operations.doctor.topic_rights import forbidden_accesses
from fleet.wire import presence
from fleet.wire.mqtt.packets import Publish
from fleet.wire.topics import down_topic, presence_topic, up_topic

_KEYS = (
    "FLEET_KEYS (or FLEET_KEYS_FILE) must hold the same keys as the broker. Mosquitto reads them from the file of "
    "plugin_opt_keys_file; EMQX asks the api, at the URL and with the token in emqx.conf (FLEET_BROKER_TOKEN)"
)
_DELIVERY = (
    "Firmware never subscribes. Load the plugin (mosquitto/README.md: `plugin` and plugin_opt_keys_file), or enable "
    "auto_subscribe in EMQX (deploy/emqx), or put `fleet front` before the broker and set FLEET_MQTT_PUBLIC to its "
    "address"
)
_UPGRADE = (
    "Set `upgrade_outgoing_qos true` in mosquitto.conf, or mqtt.upgrade_qos = true in EMQX. Without it, messages of "
    "devices are lost while another worker takes over a shard"
)


async def examine(site: SiteUnderTest) -> Findings:
    if site.broker is None or site.keys is None:
        yield skipped("broker.reach", "no broker or no keys are set", "set FLEET_MQTT_URL and FLEET_KEYS")
        return
    async with AsyncExitStack() as stack:
        try:
            service = await stack.enter_async_context(MqttProbe.to(site.broker, site.service("a")))
        except MqttFault as fault:
            yield _unreached(fault)
            return
        yield ok("broker.reach", f"{site.broker} answers")
        yield ok("broker.login", f"the broker accepts a service with the key {site.keys.ids[0]}")
        try:
            async for finding in _admit(site, service, stack):
                yield finding
        except MqttFault as fault:
            yield problem("broker.lost", str(fault), "See the broker's log for the reason")


async def _admit(site: SiteUnderTest, service: MqttProbe, stack: AsyncExitStack) -> Findings:
    first, second = site.macs[1], site.macs[2]
    for mac in (first, second):
        for topic in (up_topic(mac), presence_topic(mac)):
            await service.subscribe(topic)
    try:
        found = await broker_addresses(site)
        device, address_used, shut = await stack.enter_async_context(connect_first(found, site.device(1)))
        other = await stack.enter_async_context(MqttProbe.to(address_used.address, site.device(2)))
    except MqttFault as fault:
        yield problem("broker.door", f"no device can connect: {fault}", _open_advice(fault))
        return
    for finding in _public_address(address_used, shut):
        yield finding
    async for finding in examine_passwords(site, address_used.address):
        yield finding
    pair = Pair(service, device, first)
    yield await pair.presence()
    yield await pair.delivery()
    yield await pair.quality()
    yield await _kept(site, pair)
    yield await _rights(pair, other, second)


@dataclass(frozen=True, slots=True)
class Pair:
    """A service and a device that are both connected."""

    service: MqttProbe
    device: MqttProbe
    mac: str

    async def presence(self) -> Finding:
        topic = presence_topic(self.mac)

        def online(message: Publish) -> bool:
            change = presence.parse(message.payload) if message.topic == topic else None
            return change is not None and change.online

        found = await self.service.message(online)
        return judge(
            "broker.presence",
            found is not None,
            ("it publishes when a device connects", "it does not publish when a device connects"),
            "Use the plugin, `fleet front`, or EMQX's presence rule (deploy/emqx), which publish fleet/presence/…. "
            "Without these messages, workers do not discover tools",
        )

    async def delivery(self) -> Finding:
        sent = new_probe_message()
        await self.service.publish(down_topic(self.mac), sent)
        found = await self.device.message(equal_to(sent))
        return judge(
            "broker.delivery",
            found is not None,
            ("a device without a subscription gets its messages", "a device without a subscription gets no messages"),
            _DELIVERY,
        )

    async def quality(self) -> Finding:
        sent = new_probe_message()
        await self.device.publish(up_topic(self.mac), sent)
        found = await self.service.message(equal_to(sent))
        if found is None:
            return problem("broker.qos", "a message of a device does not arrive", _DELIVERY)
        return judge(
            "broker.qos",
            bool(found.packet_id),
            (
                "messages that devices publish at QoS 0 arrive at QoS 1",
                "messages that devices publish at QoS 0 arrive at QoS 0",
            ),
            _UPGRADE,
        )


async def _kept(site: SiteUnderTest, pair: Pair) -> Finding:
    """Whether the broker keeps a message that a device publishes while its shard has no owner."""
    assert site.broker is not None, "asked only where there is one"  # noqa: S101
    who, sent = site.service("kept"), new_probe_message()
    try:
        async with MqttProbe.to(site.broker, who, clean=False) as owner:
            await owner.subscribe(up_topic(pair.mac))
        await pair.device.publish(up_topic(pair.mac), sent)
        await pair.service.message(equal_to(sent))
        async with MqttProbe.to(site.broker, who, clean=False) as owner:
            found = await owner.message(equal_to(sent))
    finally:
        # A clean session with the same client id makes the broker delete the persistent one.
        with suppress(MqttFault):
            async with MqttProbe.to(site.broker, who):
                pass
    return judge(
        "broker.kept",
        found is not None,
        (
            "the broker keeps messages of devices while another worker takes over a shard",
            "the broker loses messages of devices while another worker takes over a shard",
        ),
        _UPGRADE + ". The broker must also keep messages of persistent sessions (max_queued_messages; EMQX: "
        "mqueue_store_qos0 = true)",
    )


async def _rights(pair: Pair, other: MqttProbe, other_mac: str) -> Finding:
    broken = await forbidden_accesses(pair.service, pair.device, other, pair.mac, other_mac)
    return judge(
        "broker.topics",
        not broken,
        ("a device may use only its own topics", f"a device may {', '.join(broken)}"),
        "A client that may publish to a device controls it. Use the plugin, `fleet front`, or deploy/emqx/acl.conf "
        "with no_match = deny",
    )


def _unreached(fault: MqttFault) -> Finding:
    if fault.stage == "login":
        return problem("broker.login", str(fault), _KEYS)
    if fault.stage == "tls":
        advice = (
            "The host in FLEET_MQTT_URL must be a name in the broker's certificate. With a private authority, set "
            "FLEET_TLS_CA"
        )
        return problem("broker.tls", str(fault), advice)
    return problem("broker.reach", str(fault), "Check that the broker runs, FLEET_MQTT_URL, and firewalls between")


def _open_advice(fault: MqttFault) -> str:
    if fault.stage == "login":
        return _KEYS
    return "FLEET_MQTT_PUBLIC (else FLEET_PUBLIC_HOST and FLEET_MQTT_PORT) must lead to the broker or the front"


def _public_address(address_used: BrokerAddress, shut: list[tuple[BrokerAddress, MqttFault]]) -> list[Finding]:
    for closed, fault in shut:
        if closed.public:
            return [_unreachable_address(fault)]
    if address_used.public:
        return [
            ok(
                "broker.door",
                f"bootstrap sends devices to {address_used.address.host}:{address_used.address.port}, and they can "
                "connect there",
            )
        ]
    return [
        skipped(
            "broker.door",
            f"tried at {address_used.address}, because the address for devices is not known here",
            "set FLEET_PUBLIC_HOST or FLEET_MQTT_PUBLIC, or start the api",
        )
    ]


def _unreachable_address(fault: MqttFault) -> Finding:
    if fault.stage == "tls":
        advice = (
            "On port 8883 devices use TLS. They trust public authorities only and verify the name: renew the "
            "certificate (FLEET_TLS_CERT, or certfile of the broker), and set FLEET_PUBLIC_HOST or FLEET_MQTT_PUBLIC "
            "to a name in it"
        )
        return problem("broker.door", f"TLS fails at the address for devices: {fault}", advice)
    advice = (
        "Set FLEET_MQTT_PUBLIC (else FLEET_PUBLIC_HOST and FLEET_MQTT_PORT) to an address that devices reach. If this "
        "machine cannot reach its own public address, run `fleet doctor --ota URL` in the network of the devices"
    )
    return problem("broker.door", f"the address for devices does not answer: {fault}", advice)
