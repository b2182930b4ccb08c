"""The broker of the suite's own server: embedded, Mosquitto with the plugin, or Mosquitto behind a front."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from enum import StrEnum
from pathlib import Path

from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.mosquitto import build_plugin, run_mosquitto, until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.process import run_program
from fleet.workbench.local_servers.server import Value, fleet_command, write_settings


class OwnBroker(StrEnum):
    """A broker, and how it reaches devices that never subscribe."""

    EMBEDDED = "embedded"
    PLUGIN = "plugin"
    FRONT = "front"


@asynccontextmanager
async def own_broker(
    kind: OwnBroker, port: int, folder: Path, settings: Mapping[str, Value]
) -> AsyncIterator[dict[str, Value]]:
    """Run a broker beside the block, and give the settings by which `fleet up` and its devices find it.

    Args:
        kind: Which one; the embedded one is the server's own matter.
        port: Where devices reach it.
        folder: For its files.
        settings: Of the server.

    Raises:
        ConfigError: Mosquitto is not installed, or the plugin cannot be built.
        Unavailable: It ended, or did not get ready.
    """
    if kind is OwnBroker.EMBEDDED:
        yield {}
        return
    keys, keys_file = _write_keys(folder)
    plugin = await build_plugin(folder) if kind is OwnBroker.PLUGIN else None
    inside = port if plugin else choose()
    reached: dict[str, Value] = {
        "mqtt_url": f"mqtt://{LOOPBACK}:{inside}",
        "mqtt_public": f"{LOOPBACK}:{port}",
        "keys_file": str(keys_file),
        "revocations_file": str(folder / "revoked"),
    }
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(run_mosquitto(folder, inside, plugin, keys))
        if plugin is None:
            config = folder / "front.toml"
            write_settings({**settings, **reached}, config)
            command = fleet_command(config, "front")
            await stack.enter_async_context(run_program("the front", command, folder / "front.log"))
            await until_accepting("the front", port)
        yield reached


def _write_keys(folder: Path) -> tuple[CredentialKeys, Path]:
    keys, file = CredentialKeys(f"conformance:{secrets.token_hex(24)}"), folder / "keys"
    folder.mkdir(mode=0o700)
    file.touch(mode=0o600)
    file.write_text(keys.as_file(), encoding="utf-8")
    return keys, file
