"""The broker's addresses: the one that bootstrap gives to devices, and others that the doctor can try."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.settings.tls import FIRMWARE_PORT, LOOPBACK
from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire.identity import Credentials


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """An address, and whether bootstrap gives it to devices."""

    address: MqttAddress
    public: bool = False


async def broker_addresses(site: SiteUnderTest) -> list[BrokerAddress]:
    """Return the addresses to try, in order: the one for devices first, then those that this machine knows."""
    settings = site.settings
    public = (await site.bootstrapped()).endpoint or _named(site)
    found = [BrokerAddress(_address(site, *public), public=True)] if public else []
    if site.up:
        found.append(BrokerAddress(_address(site, LOOPBACK, settings.mqtt_port)))
    if site.broker is not None:
        found.append(BrokerAddress(site.broker))
    seen: dict[tuple[str, int], BrokerAddress] = {}
    for one in found:
        seen.setdefault((one.address.host, one.address.port), one)
    return list(seen.values())


@asynccontextmanager
async def connect_first(
    found: list[BrokerAddress], who: Credentials
) -> AsyncIterator[tuple[MqttProbe, BrokerAddress, list[tuple[BrokerAddress, MqttFault]]]]:
    """Yield the first connection that succeeds, with its address, and the failed addresses with their reasons.

    Raises:
        MqttFault: All addresses fail, or one refuses the password.
    """
    failed: list[tuple[BrokerAddress, MqttFault]] = []
    async with AsyncExitStack() as stack:
        for one in found:
            try:
                probe = await stack.enter_async_context(MqttProbe.to(one.address, who))
            except MqttFault as fault:
                if fault.stage == "login":
                    raise
                failed.append((one, fault))
                continue
            yield probe, one, failed
            return
    raise failed[0][1] if failed else MqttFault("reach", "no address of the broker is known")


def _named(site: SiteUnderTest) -> tuple[str, int] | None:
    """Return the address that bootstrap would give to devices, if the settings contain it."""
    settings = site.settings
    if settings.mqtt_public:
        host, _, port = settings.mqtt_public.partition(":")
        return host, int(port) if port.isdigit() else FIRMWARE_PORT
    if settings.public_host:
        return settings.public_host, settings.mqtt_port if settings.tls_cert is None else FIRMWARE_PORT
    return None


def _address(site: SiteUnderTest, host: str, port: int) -> MqttAddress:
    return MqttAddress(host, port, port == FIRMWARE_PORT, site.settings.tls_ca)
