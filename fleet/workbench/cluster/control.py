"""Commands for a running cluster: a socket in its folder, lines of JSON."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fleet.ground.errors import ConfigError, FleetError, Unavailable
from fleet.ground.tasks import isolate
from fleet.workbench.cluster.cluster import Cluster, Restart
from fleet.workbench.cluster.plan import ROLES, Role

_NAME = "control"
_LONGEST_PATH = 100
"""The kernel takes 107 bytes."""


class Control:
    """Takes commands.

    Args:
        cluster: Whose.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            await isolate("order", self._serve(reader, writer))
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def told(restart: Restart) -> None:
            _write(writer, {"restart": dataclasses.asdict(restart)})

        roles = _read_order(await reader.readline())
        try:
            for role in roles:
                await self._cluster.restart(role, told)
        except FleetError as error:
            _write(writer, {"failed": str(error)})
        else:
            _write(writer, {"done": True})
        with suppress(OSError):
            await writer.drain()


@asynccontextmanager
async def controlled(cluster: Cluster) -> AsyncIterator[None]:
    """Take commands for a cluster during the block."""
    path = control_path(cluster.plan.data)
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(Control(cluster).take, path)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def is_running(data: Path) -> bool:
    """Return whether a cluster runs in a folder."""
    try:
        _, writer = await asyncio.open_unix_connection(control_path(data))
    except OSError:
        return False
    writer.close()
    return True


async def order_restart(data: Path, roles: Sequence[Role], on_end: Callable[[Restart], None]) -> None:
    """Let the cluster in a folder restart these roles; return when it has.

    Raises:
        ConfigError: None runs there.
        Unavailable: A new process did not get ready, or the cluster ended.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(control_path(data))
    except OSError as error:
        raise ConfigError(f"no cluster runs in {data}: start it with `scripts/cluster up`") from error
    try:
        _write(writer, {"restart": list(roles)})
        while line := await reader.readline():
            told = json.loads(line)
            if told.get("done"):
                return
            if "failed" in told:
                raise Unavailable(str(told["failed"]))
            on_end(Restart(**told["restart"]))
        raise Unavailable("the cluster ended meanwhile")
    finally:
        writer.close()


def control_path(data: Path) -> Path:
    """Return the path of the socket.

    Raises:
        ConfigError: The folder's path is too long for a socket.
    """
    path = data.absolute() / _NAME
    if len(str(path).encode()) > _LONGEST_PATH:
        raise ConfigError(f"the folder's path is too long for a socket in it: {data}")
    return path


def _read_order(line: bytes) -> list[Role]:
    with suppress(ValueError, AttributeError, TypeError):
        wanted = json.loads(line).get("restart")
        return [role for role in ROLES if role in wanted]
    return []


def _write(writer: asyncio.StreamWriter, told: Mapping[str, object]) -> None:
    writer.write(json.dumps(told).encode() + b"\n")
