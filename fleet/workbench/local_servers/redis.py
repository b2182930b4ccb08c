"""Runs Debian's `redis-server` on this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import Program, find_program, run_program


@asynccontextmanager
async def run_redis(folder: Path, port: int, log: Path, *, keep: bool) -> AsyncIterator[Program]:
    """Run Redis during the block, on the loopback address; the block begins when it accepts connections.

    Args:
        folder: For its data.
        port: To listen on.
        log: File for its log.
        keep: Whether it keeps its data in an append-only file, as in production.

    Raises:
        ConfigError: Redis is not installed.
        Unavailable: Redis ended, or was not ready in time.
    """
    address = ["--bind", LOOPBACK, "--port", str(port), "--dir", str(folder)]
    persistence = ["--save", "", "--appendonly", "yes" if keep else "no", "--appendfsync", "everysec"]
    async with run_program("Redis", [find_program("redis-server"), *address, *persistence], log) as program:
        await until_accepting("Redis", port)
        yield program
