"""A `fleet up` to run the checks against, set up as docs/conformance.md says for any server."""

import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.conformance.stage import Setup
from fleet.conformance.steering.server import Steering
from fleet.local.ports import LOOPBACK, Ports, choose
from fleet.local.server import Value, run_server, settings_for

IDLE_SECONDS = 20.0
REFUSED = "02:00:00:00:00:0f"


def steered(url: str) -> dict[str, Value]:
    """Return the settings that lead all three models to the scripted ones at a base URL."""
    settings: dict[str, Value] = {}
    for model in ("LLM", "ASR", "TTS"):
        settings |= {f"{model}_BASE_URL": url, f"{model}_MODEL": "scripted", f"{model}_API_KEY": "none"}
    return {name.lower(): value for name, value in settings.items()}


@asynccontextmanager
async def own_server(steering: Steering) -> AsyncIterator[Setup]:
    """Run a server on free ports of the loopback address beside the block.

    Raises:
        Unavailable: It ended, or was not up in time.
    """
    ports = Ports(mqtt=choose(), udp=choose(kind=socket.SOCK_DGRAM), http=choose())
    with tempfile.TemporaryDirectory(prefix="fleet-conformance-") as folder:
        path = Path(folder)
        settings = {
            **settings_for(ports, path / "data"),
            **steered(f"http://{LOOPBACK}:{steering.port}/v1"),
            "idle_seconds": IDLE_SECONDS,
            "refused_devices": REFUSED,
        }
        async with run_server(settings, path, path / "server.log", lambda _: None) as server:
            yield Setup(server.ota_url, steering, IDLE_SECONDS, REFUSED)
