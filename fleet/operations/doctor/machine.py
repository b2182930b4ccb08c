"""This machine: open files, and room for datagrams. It says nothing of other machines' roles."""

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
        (f"{soft} files may be open", f"a process started here may open {soft} files only"),
        f"Raise it for api, front and broker (LimitNOFILE= of the service, ulimit -n; at most {hard} now): "
        "each device's "
        "connection is an open file",
        warning,
    )
    limit = _read_limit()
    if limit is None:
        yield skipped("machine.udp", "this system does not say how much it buffers")
        return
    yield judge(
        "machine.udp",
        limit >= RECEIVE_BUFFER,
        (f"datagrams are buffered up to {limit // 1024} KiB", f"datagrams are buffered up to {limit // 1024} KiB only"),
        f"For an edge with hundreds of conversations: sysctl -w net.core.rmem_max={RECEIVE_BUFFER}",
        warning,
    )


def _read_limit() -> int | None:
    try:
        return int(_RECEIVE_LIMIT.read_text())
    except (OSError, ValueError):
        return None
