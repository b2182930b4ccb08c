"""Group O, continued: firmware that is offered at bootstrap, and its download."""

from fleet.wire.firmware import parse_version
from fleet.workbench.conformance.checks.bootstrap import GROUP, boot
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.http_exchange import Reply, get
from fleet.workbench.conformance.verdict import NotApplicable, require
from fleet.workbench.sim.messages.message import JsonObject, member, number, text

_OLD = "0.0.1"
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
    forced = _section(await boot(context, board=board, version=f"{version}.9"))
    require(number(forced.get("force")) == 1, f"nothing is forced on a board with {version}.9: {forced}")
    again = _section(await boot(context, board=board, version=version))
    require(number(again.get("force")) != 1, f"force is still on for a device that has {version}")
    return f"{version} is forced on {version}.9, and not on itself"


@GROUP.check("O7", "offered firmware can be downloaded as 4G boards do it", profiles=_STOCK)
async def sends_firmware(context: CheckContext) -> str:
    board, version = _image(context.setup.images.offered)
    firmware = _section(await boot(context, board=board, version=_OLD))
    url = text(firmware, "url") or ""
    require(text(firmware, "version") == version and url, f"a device with {_OLD} is offered {firmware}")
    first, second = await get(url), await get(url)
    require(first.status == 200, f"status {first.status}")
    require("Content-Length" in first.names, f"no Content-Length, spelled so, among {', '.join(sorted(first.names))}")
    length = int(first.headers["content-length"])
    require(length == len(first.body) > 0, f"Content-Length {length}, but {len(first.body)} bytes")
    require(first.body == second.body, "a second download differs")
    return f"{version} for {_OLD}: {length} bytes"


def _section(reply: Reply) -> JsonObject:
    require(reply.status == 200, f"status {reply.status}")
    return member(reply.json, "firmware")


def _image(told: str) -> tuple[str, str]:
    board, slash, version = told.partition("/")
    if not slash:
        raise NotApplicable("it is not known what firmware the server has; see --firmware and --forced")
    return board, version
