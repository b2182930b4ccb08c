"""One run of `fleet doctor`: examine, print the findings."""

import asyncio
from collections.abc import Sequence

from fleet.core.finding import Finding, exit_code
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.connect import read_mac
from fleet.operations.doctor.examination import PARTS, examine
from fleet.operations.doctor.remote import examine_remote
from fleet.operations.doctor.report import show, show_json
from fleet.operations.doctor.site import SiteUnderTest, open_site
from fleet.roles.control.doctor.device import SiteTerms, examine_device


async def run_doctor(settings: Settings, device: str, only: str, ota: str, *, as_json: bool) -> int:
    """Examine, print, and return the exit code; each option may be empty.

    Raises:
        ConfigError: The request names an unknown part.
        Unavailable: Redis does not answer (for one device).
    """
    findings = await _examine(settings, device, only, ota)
    if as_json:
        show_json(findings)
    else:
        await asyncio.to_thread(show, findings)
    return exit_code(findings)


def choose_parts(only: str) -> frozenset[str]:
    """Return the names of the parts to examine.

    Raises:
        ConfigError: A part is unknown.
    """
    wanted = frozenset(name.strip() for name in only.split(",") if name.strip())
    if unknown := wanted - set(PARTS):
        raise ConfigError(f"{', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    return wanted


def device_terms(site: SiteUnderTest) -> SiteTerms:
    """Return what the settings of a site demand of its devices."""
    return SiteTerms(site.settings.activation, site.keys.ids if site.keys is not None else ())


async def _examine(settings: Settings, device: str, only: str, ota: str) -> Sequence[Finding]:
    if device:
        mac = read_mac(device)
        async with open_site(settings) as site:
            return await examine_device(site.reachable_store(), mac, device_terms(site))
    if ota:
        return await examine_remote(settings, ota)
    parts = choose_parts(only)
    async with open_site(settings) as site:
        return await examine(site, parts)
