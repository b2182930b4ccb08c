"""A role of fleet as a process of its own, started as an operator starts it."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.workbench.local_servers.module_command import module_command
from fleet.workbench.local_servers.mosquitto import READY_SECONDS, until_accepting
from fleet.workbench.local_servers.process import find_program, run_program


@asynccontextmanager
async def role_process(
    role: str, settings: Mapping[str, str], port: int, folder: Path, seconds: float = READY_SECONDS
) -> AsyncIterator[int]:
    """Run `fleet ROLE` beside the block, which begins when it listens on `port`; give its process id.

    Args:
        role: The command.
        settings: Its environment, together with HOME and PATH; the environment of this process is not inherited.
        port: Where it listens.
        folder: Takes its log.
        seconds: Longest wait until it listens.

    Raises:
        Unavailable: It ended, or does not listen in time.
    """
    environment = {"HOME": str(folder), "PATH": os.defpath, **settings}
    pairs = [f"{name}={value}" for name, value in environment.items()]
    command = [find_program("env"), "-i", *pairs, *module_command("fleet", role)]
    async with run_program(f"the {role}", command, folder / f"{role}.log") as program:
        await until_accepting(f"the {role}", port, seconds)
        yield program.pid
