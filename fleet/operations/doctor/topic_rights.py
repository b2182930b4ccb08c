"""Try what the broker must refuse to a device: publishing as or to another device, and reading its messages."""

from contextlib import suppress

from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.probe_message import equal_to, new_probe_message
from fleet.wire.topics import down_topic, up_topic


async def forbidden_accesses(
    service: MqttProbe, device: MqttProbe, other: MqttProbe, mac: str, other_mac: str
) -> list[str]:
    """Return what a device can do that it must not; a broker that ends its connection for trying refuses it.

    Args:
        service: Hears what devices say, and may speak to them.
        device: Tries it.
        other: Its neighbour.
        mac: Of the one who tries.
        other_mac: Of the neighbour.

    Raises:
        MqttFault: The connection of the service or of the neighbour broke.
    """
    named, spoken, heard = new_probe_message(), new_probe_message(), new_probe_message()
    broken: list[str] = []
    with suppress(MqttFault):
        await device.subscribe(down_topic(other_mac))
        await device.subscribe("fleet/down/#")
        await device.publish(up_topic(other_mac), named)
        await device.publish(down_topic(other_mac), spoken)
        await device.settle()
    # What was sent before these two has gone through when they have.
    await service.publish(down_topic(other_mac), heard)
    await other.message(equal_to(heard))
    await other.publish(up_topic(other_mac), heard)
    await service.message(equal_to(heard))
    if service.seen(equal_to(named)):
        broken.append("speak in another's name")
    if other.seen(equal_to(spoken)):
        broken.append("give orders to another")
    with suppress(MqttFault):
        await device.settle()
    if device.seen(equal_to(heard)):
        broken.append("hear what another is told")
    return broken
