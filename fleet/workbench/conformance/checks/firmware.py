"""Group O, continued: firmware that is offered at bootstrap, and its download."""

import asyncio

from fleet.wire.firmware import parse_version
from fleet.workbench.conformance.checks.bootstrap import GROUP, boot
from fleet.workbench.conformance.context import CheckContext, fresh_mac
from fleet.workbench.conformance.http_exchange import Reply, get
from fleet.workbench.conformance.verdict import NotApplicable, require
from fleet.workbench.sim.messages.message import JsonObject, member, number, text

_OLD = "0.0.1"
_SEEN_SECONDS = 60.0
"""Longest time until a device that a server has just seen is offered firmware."""
_STOCK = "P1 P2 P3 P4 P5 P6 P7 P9"
"""A computer takes no firmware."""


@GROUP.check("O5", "a device that has the newest firmware is offered none")
async def offers_nothing_old(context: CheckContext) -> str:
    firmware = _section(await boot(context))
    offered, running = parse_version(text(firmware, "version") or "0"), parse_version(context.profile.version)
    require(number(firmware.get("force")) != 1, "force is on")
    require(offered is not None, f"version {firmware.get('version')!r} makes firmware abort")
    require(offered is None or running is None or offered <= running, f"version {firmware.get('version')} is offered")
    board, version = _image(context.setup.images.offered)
    same = _section(await boot(context, board=board, version=version))
    require(text(same, "version") in (None, "", version), f"a device with {version} is offered {same}")
    return f"nothing for {context.profile.version}, nothing for a board that has its newest, {version}"


@GROUP.check("O6", "a forced upgrade is not forced on a device that has it", profiles=_STOCK)
async def forces_once(context: CheckContext) -> str:
    board, version = _image(context.setup.images.forced)
    forced = await _offered(context, board, f"9{version}")
    require(number(forced.get("force")) == 1, f"nothing is forced on a board with 9{version}: {forced}")
    again = _section(await boot(context, board=board, version=version))
    require(number(again.get("force")) != 1, f"force is still on for a device that has {version}")
    return f"{version} is forced on 9{version}, and not on itself"


@GROUP.check("O7", "offered firmware can be downloaded as 4G boards do it", profiles=_STOCK)
async def sends_firmware(context: CheckContext) -> str:
    board, version = _image(context.setup.images.offered)
    firmware = await _offered(context, board, _OLD)
    url = text(firmware, "url") or ""
    require(text(firmware, "version") == version and url, f"a device with {_OLD} is offered {firmware}")
    first, second = await get(url), await get(url)
    require(first.status == 200, f"status {first.status}")
    require("Content-Length" in first.names, f"no Content-Length, spelled so, among {', '.join(sorted(first.names))}")
    length = int(first.headers["content-length"])
    require(length == len(first.body) > 0, f"Content-Length {length}, but {len(first.body)} bytes")
    require(first.body == second.body, "a second download differs")
    return f"{version} for {_OLD}: {length} bytes"


async def _offered(context: CheckContext, board: str, version: str) -> JsonObject:
    """Return the firmware that a device is offered; a server may have to see it first."""
    mac, clock = fresh_mac(), asyncio.get_running_loop().time
    until = clock() + _SEEN_SECONDS
    while not text(found := _section(await boot(context, mac=mac, board=board, version=version)), "url"):
        if clock() > until:
            break
        await asyncio.sleep(1.0)
    return found


def _section(reply: Reply) -> JsonObject:
    require(reply.status == 200, f"status {reply.status}")
    return member(reply.json, "firmware")


def _image(told: str) -> tuple[str, str]:
    board, slash, version = told.partition("/")
    if not slash:
        raise NotApplicable("it is not known what firmware the server has; see --firmware and --forced")
    return board, version
