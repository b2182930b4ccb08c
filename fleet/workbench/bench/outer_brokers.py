"""Brokers for more devices than a process may have open files: each is bridged to the broker of the workers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.mosquitto import run_mosquitto
from fleet.workbench.local_servers.ports import LOOPBACK, choose

_BRIDGE: Final = """connection inner
address {host}:{port}
bridge_protocol_version mqttv50
remote_clientid fleet-bridge-{number}
notifications false
topic fleet/up/# out 0
topic fleet/presence/# out 1
topic fleet/down/# in 0
"""
"""Every outer broker gets the messages to all devices; its plugin drops those to devices of others."""


@dataclass(frozen=True, slots=True)
class OuterBroker:
    """A Mosquitto with the plugin, for devices only: its address as devices get it, and its process id."""

    address: str
    pid: int


@asynccontextmanager
async def outer_brokers(
    count: int, folder: Path, inner: int, plugin: Path, keys: CredentialKeys
) -> AsyncIterator[list[OuterBroker]]:
    """Run so many brokers during the block; they give and take messages at the port `inner`, where nobody is refused.

    Raises:
        ConfigError: Mosquitto is not installed.
        Unavailable: One ended, or was not ready in time.
    """
    async with AsyncExitStack() as stack:
        found = []
        for number in range(count):
            bridge, port = folder / f"bridge-{number}", choose()
            bridge.mkdir()
            text = _BRIDGE.format(host=LOOPBACK, port=inner, number=number)
            (bridge / "bridge.conf").write_text(text, encoding="utf-8")
            options = {"include_dir": str(bridge), "plugin_opt_messages_a_second": "0"}
            broker = await stack.enter_async_context(run_mosquitto(folder, port, plugin, keys, options))
            found.append(OuterBroker(f"{LOOPBACK}:{port}", broker.pid))
        yield found
