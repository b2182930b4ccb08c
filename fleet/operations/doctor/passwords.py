"""Check which passwords the broker refuses: wrong ones, and those on the list of who may not connect."""

import asyncio
from dataclasses import replace

from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.access.revocations import Revocations
from fleet.core.finding import Finding, Findings, ok, problem, skipped, warning
from fleet.ground.errors import Unavailable
from fleet.operations.doctor.mqtt_probe import MqttFault, MqttProbe
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire.identity import Credentials

TRIES = 6
_PAUSE_SECONDS = 1.0
"""Between two tries. A change of the list is in force everywhere after five seconds."""


async def examine_passwords(site: SiteUnderTest, address: MqttAddress) -> Findings:
    """Yield the findings about a wrong and about an outdated password."""
    yield await _wrong(site, address)
    yield await _outdated(site, address)


async def _wrong(site: SiteUnderTest, address: MqttAddress) -> Finding:
    false = replace(site.device(2), password="bm90IHRoZSBwYXNzd29yZA==", client_id=site.macs[3])  # noqa: S106
    fault = await _login_fault(address, false)
    if fault is None:
        return problem(
            "broker.password",
            f"{address} accepts a device with a wrong password",
            "Use allow_anonymous false and the plugin (mosquitto/README.md), or EMQX's HTTP authentication "
            "(deploy/emqx), or a broker that only `fleet front` can reach",
        )
    if fault.stage != "login":
        return warning("broker.password", f"the check did not work: {fault}", "Run this again")
    return ok("broker.password", "the broker refuses a wrong password")


async def _outdated(site: SiteUnderTest, address: MqttAddress) -> Finding:
    """Judge whether the broker follows the list: generation 0 is on it under every policy but `open`."""
    check, mac = "broker.revoked", site.macs[3]
    if site.store is None or site.keys is None:
        return skipped(check, "the check needs Redis", "see redis.reach")
    try:
        minimum = await Revocations(site.store).minimum(mac)
    except Unavailable as error:
        return skipped(check, str(error), "see redis.reach")
    if not minimum:
        return skipped(check, "all passwords are valid (FLEET_ACTIVATION is open, or was changed lately)")
    fault = await _last_fault(address, site.keys.issue("device", mac))
    if fault is None:
        return problem(
            check,
            "the broker accepts a password that fleet refuses, so revoked devices can connect too",
            "Mosquitto: set FLEET_REVOCATIONS_FILE for the api to a file that the broker can read, and "
            "plugin_opt_revoked_file to the same one. A front: set FLEET_REDIS_URL. EMQX: HTTP authentication "
            "(deploy/emqx)",
        )
    if fault.stage != "login":
        return warning(check, f"the check did not work: {fault}", "Run this again")
    return ok(check, "the broker refuses passwords on the list of who may not connect")


async def _last_fault(address: MqttAddress, who: Credentials) -> MqttFault | None:
    """Log in until it fails, or until the list must be in force; return the fault."""
    for _ in range(TRIES):
        if fault := await _login_fault(address, who):
            return fault
        await asyncio.sleep(_PAUSE_SECONDS)
    return None


async def _login_fault(address: MqttAddress, who: Credentials) -> MqttFault | None:
    try:
        async with MqttProbe.to(address, who):
            return None
    except MqttFault as fault:
        return fault
