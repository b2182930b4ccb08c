"""Which server is run against: one that is up already, or a `fleet up` of one's own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fleet.conformance.own_server import own_server
from fleet.conformance.stage import Setup
from fleet.conformance.steering.server import Steering
from fleet.local.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class Target:
    """The server as the command line tells of it; docs/conformance.md has the options."""

    ota: str | None = None
    steer_port: int | None = None
    steer_host: str = LOOPBACK
    idle_seconds: float | None = None
    refused: str = ""


@asynccontextmanager
async def reach(target: Target) -> AsyncIterator[Setup]:
    """Serve the scripted models, and a server of our own where none is named.

    Raises:
        Unavailable: Our own server did not come up.
    """
    if target.ota is None:
        async with Steering(LOOPBACK, 0) as steering, own_server(steering) as setup:
            yield setup
    elif target.steer_port is None:
        yield Setup(target.ota, None, target.idle_seconds, target.refused)
    else:
        async with Steering(target.steer_host, target.steer_port) as steering:
            yield Setup(target.ota, steering, target.idle_seconds, target.refused)
