"""The embedded MQTT broker: rumqttd, from the wheel `iotcore`. See docs/adr/0003-embedded-broker.md."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Final

from fleet.ground.errors import ConfigError, Unavailable, install_hint, writing
from fleet.run.embedded import rumqttd
from fleet.run.embedded.child import LOOPBACK, ChildProcess, free_port, script_command

_PROBE_SECONDS = 1.0

# rumqttd keeps the messages of each topic filter in a ring of segments, whether they are read or not. The ring bounds
# how far a session may be behind (about 4,000 messages of 250 bytes a slot). Its memory is never freed (1 MB a filter).
_CONFIG: Final = """\
id = 0

[router]
id = 0
max_connections = 10010
max_outgoing_packet_count = 200
max_segment_size = 131072
max_segment_count = 8

# A device does not get messages that it missed while it was offline: the ring needs to hold one burst only.
[router.custom_segment."fleet/down/+"]
max_segment_size = 65536
max_segment_count = 2

[v4.1]
name = "fleet"
listen = "{host}:{port}"
next_connection_delay_ms = 0

[v4.1.connections]
connection_timeout_ms = 5000
max_payload_size = 262144
max_inflight_count = 100
dynamic_filters = false
"""


class EmbeddedBroker:
    """A broker for one machine, on loopback and without passwords: devices reach it through the front.

    It keeps no state when it ends.

    Args:
        data_dir: Folder for its configuration and output; made if it does not exist.
        port: Where it listens; if None, a free port.

    Raises:
        ConfigError: The wheel is not installed, or the directory cannot be written.
        Unavailable: There is no free port.
    """

    def __init__(self, data_dir: Path, port: int | None = None) -> None:
        if importlib.util.find_spec("iotcore") is None:
            raise ConfigError(
                f"the embedded broker needs the package iotcore: {install_hint('embedded')}; or set FLEET_MQTT_URL"
            )
        self.port = port or free_port()
        config = data_dir / "broker.toml"
        with writing(config):
            data_dir.mkdir(parents=True, exist_ok=True)
            config.write_text(_CONFIG.format(host=LOOPBACK, port=self.port))
        self._restart_done = asyncio.Event()
        """Cleared during `restart`."""
        self._restart_done.set()
        command = [*script_command(rumqttd.__file__), str(config)]
        self._child = ChildProcess("the embedded broker", command, data_dir / "broker.log")

    @property
    def url(self) -> str:
        return f"mqtt://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._child.pid

    async def start(self) -> None:
        """Start it and wait until it accepts connections.

        Raises:
            Unavailable: It did not start; the message has the reason.
        """
        await self._child.start(self._accepts)

    async def stop(self) -> None:
        await self._child.stop()

    async def restart(self) -> None:
        """Restart it on the same port, without its state; `run` keeps waiting.

        Raises:
            Unavailable: It did not start again.
        """
        self._restart_done.clear()
        try:
            await self.stop()
            await self.start()
        finally:
            self._restart_done.set()

    async def run(self) -> None:
        """Wait until cancelled, then stop it; call it after `start`.

        Raises:
            Unavailable: It ended by itself. `start` starts it again, on the same port.
        """
        try:
            await self._child.run()
            while not self._restart_done.is_set():
                await self._restart_done.wait()
                if self.pid is None:
                    raise Unavailable("the embedded broker did not restart")
                await self._child.run()
        finally:
            await self._child.stop()

    async def _accepts(self) -> bool:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                _, writer = await asyncio.open_connection(LOOPBACK, self.port)
        except OSError:
            return False
        writer.transport.abort()
        return True
