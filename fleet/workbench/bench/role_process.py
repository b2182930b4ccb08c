"""A role of fleet as a process of its own, started as an operator starts it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.ground.errors import Unavailable
from fleet.workbench.local_servers.ports import accepts
from fleet.workbench.local_servers.process import find_program, run_program

_READY_SECONDS = 60.0


@asynccontextmanager
async def role_process(role: str, settings: Mapping[str, str], port: int, folder: Path) -> AsyncIterator[int]:
    """Run `fleet ROLE` beside the block, which begins when it listens on `port`; give its process id.

    Args:
        role: The command.
        settings: Its environment, together with HOME and PATH; the environment of this process is not inherited.
        port: Where it listens.
        folder: Takes its log.

    Raises:
        Unavailable: It ended, or does not listen in time.
    """
    environment = {"HOME": str(folder), "PATH": os.defpath, **settings}
    pairs = [f"{name}={value}" for name, value in environment.items()]
    command = [find_program("env"), "-i", *pairs, sys.executable, "-m", "fleet", role]
    async with run_program(f"the {role}", command, folder / f"{role}.log") as program:
        await _until_open(role, port)
        yield program.pid


async def _until_open(role: str, port: int) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not accepts(port):  # noqa: ASYNC110 - a server does not notify anybody when it is ready
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unavailable(f"the {role} does not listen on port {port} after {_READY_SECONDS:g} s") from None
