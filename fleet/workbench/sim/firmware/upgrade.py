"""Upgrades of the simulated firmware: the download, and the first start of the new image (contract 1.5)."""

from dataclasses import replace

from fleet.wire.firmware import image_version
from fleet.workbench.sim.network.download import download
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.runtime.context import DeviceContext


async def install(url: str, context: DeviceContext) -> bool:
    """Download an image and write it for the next start; return whether that succeeded."""
    board, journal = context.board, context.journal
    found = await download(url, board.upload_headers)
    journal.judge(found.findings)
    version = image_version(found.content)
    reason = found.reason or ("the flash refuses it" if board.upgrades_fail else "")
    journal.note("firmware", url=url, bytes=len(found.content), version=version or "", reason=reason)
    if reason or not found.content:
        return False
    board.installed = version or ""
    return True


def running_profile(context: DeviceContext) -> Profile:
    """Return the build with the version that runs."""
    return replace(context.profile, version=context.board.version or context.profile.version)


def start_installed(context: DeviceContext) -> None:
    """Start with what was installed. An image that does not run is given up: the earlier one starts."""
    board = context.board
    if board.installed in board.broken_versions:
        context.journal.note("rollback", version=board.installed)
    elif board.installed:
        board.version = board.installed
    board.installed = ""
