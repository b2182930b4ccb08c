"""Trying what a device must not be able to do: speak in another's name or to it, and hear it."""

from contextlib import suppress

from fleet.operations.doctor.line import Line, LineFault
from fleet.operations.doctor.mark import carrying, new_mark
from fleet.wire.topics import down_topic, up_topic


async def trespass(service: Line, device: Line, other: Line, mac: str, other_mac: str) -> list[str]:
    """Return what a device can do that it must not; a broker that ends its connection for trying refuses it.

    Args:
        service: Hears what devices say, and may speak to them.
        device: Tries it.
        other: Its neighbour.
        mac: Of the one who tries.
        other_mac: Of the neighbour.

    Raises:
        LineFault: The connection of the service or of the neighbour broke.
    """
    named, spoken, heard = new_mark(), new_mark(), new_mark()
    broken: list[str] = []
    with suppress(LineFault):
        await device.subscribe(down_topic(other_mac))
        await device.subscribe("fleet/down/#")
        await device.publish(up_topic(other_mac), named)
        await device.publish(down_topic(other_mac), spoken)
        await device.settle()
    # What was sent before these two has gone through when they have.
    await service.publish(down_topic(other_mac), heard)
    await other.message(carrying(heard))
    await other.publish(up_topic(other_mac), heard)
    await service.message(carrying(heard))
    if service.seen(carrying(named)):
        broken.append("speak in another's name")
    if other.seen(carrying(spoken)):
        broken.append("give orders to another")
    with suppress(LineFault):
        await device.settle()
    if device.seen(carrying(heard)):
        broken.append("hear what another is told")
    return broken
