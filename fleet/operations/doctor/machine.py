"""Check this machine: open files, disk, the buffer for datagrams. Roles may run on other machines."""

import os
import resource
from pathlib import Path

from fleet.adapters.net.descriptors import WANTED
from fleet.core.finding import Finding, Findings, judge, ok, problem, skipped, warning
from fleet.operations.doctor.disk import judge_disk
from fleet.operations.doctor.site import SiteUnderTest
from fleet.roles.edge.transport.socket import RECEIVE_BUFFER

LEAST_FILES = 4096
_NEARLY = 0.9
_RECEIVE_LIMIT = Path("/proc/sys/net/core/rmem_max")


async def examine(site: SiteUnderTest) -> Findings:
    yield _files(site)
    folder = site.settings.data_dir
    if folder.is_dir():
        yield judge_disk("machine.disk", folder, "fleet")
        if not os.access(folder, os.W_OK):
            advice = "Give this user the rights (chown, chmod u+rwx), or set FLEET_DATA_DIR to another folder"
            yield problem("machine.disk", f"this user may not write to {folder}", advice)
    limit = _read_limit()
    if limit is None:
        yield skipped("machine.udp", "this system does not show the size of its receive buffers")
        return
    yield judge(
        "machine.udp",
        limit >= RECEIVE_BUFFER,
        (
            f"the receive buffer for datagrams is {limit // 1024} KiB",
            f"the receive buffer for datagrams is only {limit // 1024} KiB",
        ),
        f"For an edge with hundreds of sessions, run sysctl -w net.core.rmem_max={RECEIVE_BUFFER}",
        warning,
    )


def _files(site: SiteUnderTest) -> Finding:
    """Judge the limit of the running `fleet up`, else the one that a role would have; roles raise their soft limit."""
    used = 0
    try:
        limits = Path(f"/proc/{site.pid}/limits").read_text(encoding="ascii")
        used = len(list(Path(f"/proc/{site.pid}/fd").iterdir()))
        most = int(next(line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")))
        who = f"`fleet up` (process {site.pid})"
    except (OSError, ValueError, StopIteration):  # not Linux, another user's process, or none
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most, who = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED), "a process that starts here"
    advice = (
        "Each connection of a device is an open file. Raise the limit of api, front and broker: LimitNOFILE=65536 of "
        "the systemd service, `ulimit -Hn 65536` before a start by hand, --ulimit nofile=65536 of Docker; then restart"
    )
    if used > most * _NEARLY:
        return problem("machine.files", f"{who} has {used} of {most} files open, and refuses more soon", advice)
    message = f"{who} may open {most} files" + (f", {used} are open" if used else "")
    if most < LEAST_FILES:
        return warning("machine.files", f"the limit is low: {message}", advice)
    return ok("machine.files", message)


def _read_limit() -> int | None:
    try:
        return int(_RECEIVE_LIMIT.read_text())
    except (OSError, ValueError):
        return None
