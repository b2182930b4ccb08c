"""Check this machine: the limit on open files and the buffer for datagrams. Roles may run on other machines."""

import resource
from pathlib import Path

from fleet.operations.doctor.finding import Findings, judge, skipped, warning
from fleet.operations.doctor.site import SiteUnderTest
from fleet.roles.edge.transport.socket import RECEIVE_BUFFER

LEAST_FILES = 4096
_RECEIVE_LIMIT = Path("/proc/sys/net/core/rmem_max")


async def examine(site: SiteUnderTest) -> Findings:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft == resource.RLIM_INFINITY or soft >= LEAST_FILES
    yield judge(
        "machine.files",
        enough,
        (f"a process may open {soft} files", f"a process may open only {soft} files"),
        f"Each connection of a device is an open file. Raise the limit for api, front and broker (LimitNOFILE= of the "
        f"service, or ulimit -n; at most {hard} now)",
        warning,
    )
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


def _read_limit() -> int | None:
    try:
        return int(_RECEIVE_LIMIT.read_text())
    except (OSError, ValueError):
        return None
