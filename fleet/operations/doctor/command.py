"""`fleet doctor`."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from fleet.errors import ConfigError
from fleet.operations.doctor.case import open_case
from fleet.operations.doctor.examination import PARTS, examine
from fleet.operations.doctor.finding import Finding, exit_code
from fleet.operations.doctor.outside import examine_outside
from fleet.operations.doctor.report import show, write_json
from fleet.operations.doctor.silence import examine_device
from fleet.operations.reach import reach_store, read_mac, run
from fleet.settings import Settings

Only = Annotated[str, typer.Option(help=f"Examine these only, separated by commas: {', '.join(PARTS)}.")]
Ota = Annotated[
    str,
    typer.Option(help="Be a device where you are: bootstrap at this URL (…/xiaozhi/ota/), hello, audio; nothing else."),
]


def doctor(
    device: Annotated[str, typer.Option(help="MAC of a device: tell why it is silent, instead.")] = "",
    only: Only = "",
    ota: Ota = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find out what is wrong, and what to do about it. Exit code 0: nothing; 1: problems; 2: settings are wrong.

    The settings are those of the roles: run it with the same environment. It asks chat model, voice and recognition
    once each, and talks to the broker and to an edge as a device of its own, which is forgotten afterwards.
    """

    async def work(settings: Settings) -> int:
        findings = await _examine(settings, device, _parts(only), ota)
        if as_json:
            typer.echo(write_json(findings))
        else:
            await asyncio.to_thread(show, findings)
        return exit_code(findings)

    run(work)


async def _examine(settings: Settings, device: str, only: frozenset[str], ota: str) -> Sequence[Finding]:
    if device:
        mac = read_mac(device)
        async with reach_store(settings) as store:
            return await examine_device(store, mac, settings)
    if ota:
        return await examine_outside(settings, ota)
    async with open_case(settings) as case:
        return await examine(case, only)


def _parts(only: str) -> frozenset[str]:
    wanted = frozenset(name.strip() for name in only.split(",") if name.strip())
    if unknown := wanted - set(PARTS):
        raise ConfigError(f"{', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    return wanted
