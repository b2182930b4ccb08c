"""The server under test: one that runs already, or a `fleet up` that the suite starts."""

import shlex
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.own_broker import OwnBroker
from fleet.workbench.conformance.own_server import own_server
from fleet.workbench.conformance.provision import NO_IMAGES, Binding, Images
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import run_to_end

_BIND_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Target:
    """The server as the options of the command line describe it (docs/conformance.md)."""

    ota: str | None = None
    steer_port: int | None = None
    steer_host: str = LOOPBACK
    idle_seconds: float | None = None
    refused: str = ""
    activation: "Activation | None" = None
    images: Images = NO_IMAGES
    tls: ssl.SSLContext | None = None
    broker: OwnBroker = OwnBroker.EMBEDDED


@dataclass(frozen=True, slots=True)
class Activation:
    """Bootstrap of a server that serves bound devices only; `bind` is a command line with `{code}` in it."""

    ota: str
    bind: str
    serial: str = ""
    key: bytes = b""


@asynccontextmanager
async def reach(target: Target) -> AsyncIterator[Setup]:
    """Serve the scripted models, and run a `fleet up` where no server is named.

    Raises:
        Unavailable: Our own server did not come up.
    """
    if target.ota is None:
        async with Steering(LOOPBACK, 0) as steering, own_server(steering, target.broker) as setup:
            yield setup
        return
    binding = _binding(target.activation) if target.activation else None
    setup = Setup(
        target.ota,
        idle_seconds=target.idle_seconds,
        refused=target.refused,
        tls=target.tls,
        binding=binding,
        images=target.images,
    )
    if target.steer_port is None:
        yield setup
        return
    async with Steering(target.steer_host, target.steer_port) as steering:
        yield replace(setup, steering=steering)


def _binding(activation: Activation) -> Binding:
    async def bind(code: str) -> None:
        command = [word.replace("{code}", code) for word in shlex.split(activation.bind)]
        with tempfile.TemporaryDirectory(prefix="fleet-conformance-") as folder:
            log = Path(folder) / "bind.log"
            if await run_to_end(command[0], command, log, _BIND_SECONDS):
                raise Unavailable(f"{command[0]}: {log.read_text(encoding='utf-8', errors='replace').strip()[-200:]}")

    return Binding(activation.ota, bind, activation.serial, activation.key)
