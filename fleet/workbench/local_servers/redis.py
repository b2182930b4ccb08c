"""A Redis of our own on this machine: Debian's `redis-server`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import Program, find_program, run_program


@asynccontextmanager
async def run_redis(folder: Path, port: int, log: Path, *, keep: bool) -> AsyncIterator[Program]:
    """Run it beside the block, on the loopback address; the block begins when it takes connections.

    Args:
        folder: For its data.
        port: To listen on.
        log: File for its log.
        keep: Whether it writes what it knows to an append-only file, as in production, and reads it at the start.

    Raises:
        ConfigError: It is not installed.
        Unavailable: It ended, or did not get ready.
    """
    place = ["--bind", LOOPBACK, "--port", str(port), "--dir", str(folder)]
    kept = ["--save", "", "--appendonly", "yes" if keep else "no", "--appendfsync", "everysec"]
    async with run_program("Redis", [find_program("redis-server"), *place, *kept], log) as program:
        await until_accepting("Redis", port)
        yield program
