"""Options of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from fleet.workbench.local_servers.server import Value

Role = Literal["worker", "edge", "gateway", "api"]
ROLES: tuple[Role, ...] = get_args(Role)
"""In the order in which they are restarted."""

DRAIN_SECONDS = 10.0
STOP_MARGIN_SECONDS = 7.0
"""Time beyond the drain time after which a process is killed, as for supervisors in production."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of a cluster.

    Args:
        data: Folder for keys, data, settings and logs; only its owner can read it.
        counts: Number of processes of each role.
        settings: Settings of all roles, by their names in the settings file, without addresses and keys.
        demo_model: Whether to start the demo model, because the settings name no chat endpoint.
        default_ports: Whether to use the default ports if they are free.
    """

    data: Path
    counts: Mapping[Role, int]
    settings: Mapping[str, Value] = field(default_factory=dict)
    demo_model: bool = False
    default_ports: bool = True

    @property
    def stop_seconds(self) -> float:
        """Seconds from SIGTERM until a process is killed."""
        return float(self.settings.get("drain_seconds", DRAIN_SECONDS)) + STOP_MARGIN_SECONDS


def process_counts(workers: int, edges: int, gateways: int = 1, apis: int = 1) -> dict[Role, int]:
    """Return the number of processes of each role."""
    return {"worker": workers, "edge": edges, "gateway": gateways, "api": apis}
