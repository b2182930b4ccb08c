"""One run of `fleet doctor`: what is wanted, what is found, how it is told."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.doctor.case import open_case
from fleet.operations.doctor.examination import PARTS, examine
from fleet.operations.doctor.finding import Finding, exit_code
from fleet.operations.doctor.outside import examine_outside
from fleet.operations.doctor.report import show, write_json
from fleet.operations.doctor.silence import examine_device
from fleet.operations.reach import reach_store, read_mac


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for, as the command's options have it; all of it may be empty."""

    device: str = ""
    only: str = ""
    ota: str = ""
    as_json: bool = False


async def consult(settings: Settings, wish: Wish) -> int:
    """Examine, print, and return the exit code.

    Raises:
        ConfigError: The wish names what there is not.
        Unavailable: Redis does not answer (for one device).
    """
    findings = await _examine(settings, wish)
    if wish.as_json:
        typer.echo(write_json(findings))
    else:
        await asyncio.to_thread(show, findings)
    return exit_code(findings)


def choose_parts(only: str) -> frozenset[str]:
    """Return the named parts.

    Raises:
        ConfigError: One is none.
    """
    wanted = frozenset(name.strip() for name in only.split(",") if name.strip())
    if unknown := wanted - set(PARTS):
        raise ConfigError(f"{', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    return wanted


async def _examine(settings: Settings, wish: Wish) -> Sequence[Finding]:
    if wish.device:
        mac = read_mac(wish.device)
        async with reach_store(settings) as store:
            return await examine_device(store, mac, settings)
    if wish.ota:
        return await examine_outside(settings, wish.ota)
    parts = choose_parts(wish.only)
    async with open_case(settings) as case:
        return await examine(case, parts)
