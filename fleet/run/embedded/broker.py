"""An MQTT broker that pip installs: rumqttd, from the wheel `iotcore`. See docs/adr/0003-embedded-broker.md."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Final

from fleet.ground.errors import ConfigError, Unavailable, install_hint
from fleet.run.embedded import rumqttd
from fleet.run.embedded.child import LOOPBACK, Child, free_port, script

_PROBE_SECONDS = 1.0

# Each topic filter keeps its messages in a ring of segments, read or not: the ring is both what a session may be behind
# (about 4,000 messages of 250 bytes a slot) and memory that is never given back (1 MB a filter).
_CONFIG: Final = """\
id = 0

[router]
id = 0
max_connections = 10010
max_outgoing_packet_count = 200
max_segment_size = 131072
max_segment_count = 8

# A device is sent nothing that it missed: what waits for it need be no more than a burst.
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
    """A broker for one box, on the loopback only and without passwords: devices reach it through the front.

    It forgets everything when it ends.

    Args:
        data_dir: For its configuration and output; made when it is not there.
        port: Where it listens; a free port without it.

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
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            config.write_text(_CONFIG.format(host=LOOPBACK, port=self.port))
        except OSError as error:
            raise ConfigError(f"cannot write {config}: {error.strerror}") from error
        self._renewing = asyncio.Event()
        """Set while it does not."""
        self._renewing.set()
        self._child = Child("the embedded broker", [*script(rumqttd.__file__), str(config)], data_dir / "broker.log")

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
            Unavailable: It did not start; says why.
        """
        await self._child.start(self._accepts)

    async def stop(self) -> None:
        await self._child.stop()

    async def renew(self) -> None:
        """Start it again, on the same port and with nothing in it; `run` goes on.

        Raises:
            Unavailable: It did not start again.
        """
        self._renewing.clear()
        try:
            await self.stop()
            await self.start()
        finally:
            self._renewing.set()

    async def run(self) -> None:
        """Wait, after `start`, until cancelled, and stop it then.

        Raises:
            Unavailable: It ended by itself. It can be started again, on the same port.
        """
        try:
            await self._child.run()
            while not self._renewing.is_set():
                await self._renewing.wait()
                if self.pid is None:
                    raise Unavailable("the embedded broker did not begin anew")
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
