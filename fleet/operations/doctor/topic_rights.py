"""Try accesses that the broker must refuse: publish as another device, publish to it, and read its messages."""

from contextlib import suppress

from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.probe_message import equal_to, new_probe_message
from fleet.wire.topics import down_topic, up_topic


async def forbidden_accesses(
    service: MqttProbe, device: MqttProbe, other: MqttProbe, mac: str, other_mac: str
) -> list[str]:
    """Return the accesses that the broker allows but must refuse. Closing the connection counts as a refusal.

    Args:
        service: Connection of a service; it receives what devices publish, and may publish to them.
        device: Connection of the device that tries the accesses.
        other: Connection of another device.
        mac: Of the device.
        other_mac: Of the other device.

    Raises:
        MqttFault: The connection of the service or of the other device broke.
    """
    as_other, to_other, of_other = new_probe_message(), new_probe_message(), new_probe_message()
    broken: list[str] = []
    with suppress(MqttFault):
        await device.subscribe(down_topic(other_mac))
        await device.subscribe("fleet/down/#")
        await device.publish(up_topic(other_mac), as_other)
        await device.publish(down_topic(other_mac), to_other)
        await device.settle()
    # When these two messages have arrived, all earlier ones have arrived too.
    await service.publish(down_topic(other_mac), of_other)
    await other.message(equal_to(of_other))
    await other.publish(up_topic(other_mac), of_other)
    await service.message(equal_to(of_other))
    if service.seen(equal_to(as_other)):
        broken.append("publish as another device")
    if other.seen(equal_to(to_other)):
        broken.append("publish to another device")
    with suppress(MqttFault):
        await device.settle()
    if device.seen(equal_to(of_other)):
        broken.append("read another device's messages")
    return broken
