"""A Mosquitto of its own for a benchmark, with or without fleet's plugin, and the CPU time that it has used."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.mosquitto import run_mosquitto
from fleet.workbench.local_servers.ports import choose
from fleet.workbench.local_servers.process import find_program, run_to_end

_READY_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs; `keys` let clients in, without plugin anybody comes in."""

    port: int
    pid: int
    keys: CredentialKeys

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used; it has one thread."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        except (OSError, IndexError, ValueError):
            return _ticks(self.pid) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    """Return user and system time; coarse, for kernels that keep no finer account."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError) as error:
        raise Unavailable(f"the CPU time of process {pid} cannot be read") from error


async def version(folder: Path) -> str:
    """Return how the broker calls itself."""
    log = folder / "version.log"
    await run_to_end("mosquitto", [find_program("mosquitto"), "-h"], log, _READY_SECONDS)
    return log.read_text(encoding="utf-8", errors="replace").partition("\n")[0].strip()


@asynccontextmanager
async def running_broker(folder: Path, plugin: Path | None) -> AsyncIterator[Broker]:
    """Run a broker with the shipped configuration beside the block; without plugin it lets everybody in.

    Raises:
        ConfigError: It is not installed.
        Unavailable: It ended, or did not get ready.
    """
    port, keys = choose(), CredentialKeys(f"bench:{secrets.token_hex(24)}")
    unlimited = {"plugin_opt_messages_a_second": "0"} if plugin else {}
    async with run_mosquitto(folder, port, plugin, keys, unlimited) as program:
        yield Broker(port, program.pid, keys)
