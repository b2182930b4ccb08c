"""Parameters of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from fleet.workbench.local_servers.server import Value

Role = Literal["worker", "edge", "gateway", "api"]
ROLES: tuple[Role, ...] = get_args(Role)
"""In the order in which they are restarted."""

DRAIN_SECONDS = 10.0
LEAVE_SECONDS = 7.0
"""Seconds that a role has beyond its drain time, as a supervisor in production is configured to give."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is started.

    Args:
        data: Folder for keys, data, settings and logs; readable by its owner only.
        counts: Processes of each role.
        settings: Of all roles, by their names in the settings file; where addresses and keys are is not among them.
        demo_model: Whether the demo model is started too, for who names no chat endpoint.
        usual_ports: Whether the usual ports are taken where they are free.
    """

    data: Path
    counts: Mapping[Role, int]
    settings: Mapping[str, Value] = field(default_factory=dict)
    demo_model: bool = False
    usual_ports: bool = True

    @property
    def patience(self) -> float:
        """Seconds after which a process that was asked to stop is killed."""
        return float(self.settings.get("drain_seconds", DRAIN_SECONDS)) + LEAVE_SECONDS


def counts(workers: int, edges: int, gateways: int = 1, apis: int = 1) -> dict[Role, int]:
    """Return how many processes each role has."""
    return {"worker": workers, "edge": edges, "gateway": gateways, "api": apis}
