"""Sends commands to a running cluster: lines of JSON over a Unix socket in its folder."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fleet.ground.errors import ConfigError, FleetError, Unavailable
from fleet.ground.tasks import isolate
from fleet.workbench.cluster.cluster import Cluster, Restart
from fleet.workbench.cluster.options import ROLES, Role

_NAME = "control"
_LONGEST_PATH = 100
"""Bytes; the kernel accepts 107."""


class ControlServer:
    """Executes commands for a cluster.

    Args:
        cluster: The running cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            await isolate("control command", self._serve(reader, writer))
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def report(restart: Restart) -> None:
            _write(writer, {"restart": dataclasses.asdict(restart)})

        roles = _parse_roles(await reader.readline())
        try:
            for role in roles:
                await self._cluster.restart(role, report)
        except FleetError as error:
            _write(writer, {"failed": str(error)})
        else:
            _write(writer, {"done": True})
        with suppress(OSError):
            await writer.drain()


@asynccontextmanager
async def run_control_server(cluster: Cluster) -> AsyncIterator[None]:
    """Execute commands for a cluster during the block."""
    path = control_path(cluster.options.data)
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(ControlServer(cluster).handle, path)
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


async def request_restart(data: Path, roles: Sequence[Role], on_end: Callable[[Restart], None]) -> None:
    """Ask the cluster in a folder to restart these roles; return when it has done so.

    Raises:
        ConfigError: No cluster runs in the folder.
        Unavailable: A new process was not ready in time, or the cluster ended.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(control_path(data))
    except OSError as error:
        raise ConfigError(f"no cluster runs in {data}: start it with `scripts/cluster up`") from error
    try:
        _write(writer, {"restart": list(roles)})
        while line := await reader.readline():
            reply = json.loads(line)
            if reply.get("done"):
                return
            if "failed" in reply:
                raise Unavailable(str(reply["failed"]))
            on_end(Restart(**reply["restart"]))
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


def _parse_roles(line: bytes) -> list[Role]:
    with suppress(ValueError, AttributeError, TypeError):
        wanted = json.loads(line).get("restart")
        return [role for role in ROLES if role in wanted]
    return []


def _write(writer: asyncio.StreamWriter, message: Mapping[str, object]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
