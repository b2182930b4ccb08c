"""Where devices come in: the broker's address as they are told it, and others by which the doctor may reach it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.settings.tls import FIRMWARE_PORT, LOOPBACK
from fleet.operations.doctor.case import Case
from fleet.operations.doctor.line import Line, LineFault
from fleet.wire.identity import Credentials


@dataclass(frozen=True, slots=True)
class Door:
    """An address, and whether it is the one that devices are told."""

    address: MqttAddress
    public: bool = False


async def doors(case: Case) -> list[Door]:
    """Return where devices may come in, best first: what they are told, then what leads there from this machine."""
    settings = case.settings
    told = (await case.visited()).endpoint or _named(case)
    found = [Door(_address(case, *told), public=True)] if told else []
    if case.up:
        found.append(Door(_address(case, LOOPBACK, settings.mqtt_port)))
    if case.broker is not None:
        found.append(Door(case.broker))
    seen: dict[tuple[str, int], Door] = {}
    for door in found:
        seen.setdefault((door.address.host, door.address.port), door)
    return list(seen.values())


@asynccontextmanager
async def enter(found: list[Door], who: Credentials) -> AsyncIterator[tuple[Line, Door, list[tuple[Door, LineFault]]]]:
    """Give the first connection that comes about, with its door, and the doors that were shut with their reasons.

    Raises:
        LineFault: All are shut, or one is open and refuses the password.
    """
    shut: list[tuple[Door, LineFault]] = []
    async with AsyncExitStack() as stack:
        for door in found:
            try:
                line = await stack.enter_async_context(Line.to(door.address, who))
            except LineFault as fault:
                if fault.stage == "login":
                    raise
                shut.append((door, fault))
                continue
            yield line, door, shut
            return
    raise shut[0][1] if shut else LineFault("reach", "no address of the broker is known")


def _named(case: Case) -> tuple[str, int] | None:
    """Return what bootstrap would tell devices, as far as the settings say it."""
    settings = case.settings
    if settings.mqtt_public:
        host, _, port = settings.mqtt_public.partition(":")
        return host, int(port) if port.isdigit() else FIRMWARE_PORT
    if settings.public_host:
        return settings.public_host, settings.mqtt_port if settings.tls_cert is None else FIRMWARE_PORT
    return None


def _address(case: Case, host: str, port: int) -> MqttAddress:
    return MqttAddress(host, port, port == FIRMWARE_PORT, case.settings.tls_ca)
