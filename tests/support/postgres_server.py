"""A real PostgreSQL for tests: in a container where Docker runs, otherwise Debian's on this machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.container import ServerContainer, docker_answers
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess
from tests.support.until import until

IMAGE = "postgres:15-alpine"
_DEBIAN = Path("/usr/lib/postgresql")
_OWNER = "postgres"
_SSL_REQUEST = bytes.fromhex("0000000804d2162f")
# A test's data need not survive the machine, and a database lives for a second: nothing in it is worth to be compiled
# or tidied up.
_FAST = [
    word
    for setting in ("fsync=off", "full_page_writes=off", "shared_buffers=64MB", "jit=off", "autovacuum=off")
    for word in ("-c", setting)
]


class PostgresServer:
    """One PostgreSQL on its own port, with a superuser `fleet` who needs no password.

    Args:
        directory: For its data and its log.
    """

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._directory = directory
        self._engine = self._in_container() if docker_answers() else self._as_process()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://fleet@{LOOPBACK}:{self.port}/{database}"

    def start(self) -> None:
        """Start it and return when it takes clients: it listens a moment before."""
        self._engine.start()
        if isinstance(self._engine, ServerProcess):
            ready = [_program("pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self.port)]
            until(lambda: subprocess.run(ready, check=False, timeout=300).returncode == 0, 240)

    def stop(self) -> None:
        """End it in order; `start` brings it back on the same port."""
        self._engine.stop()

    def discard(self) -> None:
        self._engine.discard()

    def _in_container(self) -> ServerContainer:
        command = ["env", "POSTGRES_USER=fleet", "POSTGRES_HOST_AUTH_METHOD=trust", "docker-entrypoint.sh", "postgres"]
        return ServerContainer(IMAGE, [*command, *_FAST], (5432, self.port), _SSL_REQUEST)

    def _as_process(self) -> ServerProcess:
        data = self._directory / "postgres"
        data.mkdir(parents=True)
        # PostgreSQL refuses to run as root, and its owner must reach the folder.
        if as_owner := _as_owner():
            shutil.chown(data, _OWNER)
            for folder in data.parents:
                if folder.stat().st_uid == os.getuid() and folder != Path(folder.root):
                    folder.chmod(folder.stat().st_mode | 0o011)
        initialise = [_program("initdb"), "-D", str(data), "-U", "fleet", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*as_owner, *initialise, "--locale=C.UTF-8"], check=True, capture_output=True, timeout=240)
        serve = [_program("postgres"), "-D", str(data), "-h", LOOPBACK, "-p", str(self.port), "-k", ""]
        return ServerProcess([*as_owner, *serve, *_FAST], self.port, self._directory / "postgres.log")


def _as_owner() -> list[str]:
    return ["setpriv", f"--reuid={_OWNER}", f"--regid={_OWNER}", "--clear-groups"] if os.getuid() == 0 else []


def _program(name: str) -> str:
    """Return a program of the newest PostgreSQL: Debian puts them into no path."""
    found = sorted(_DEBIAN.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3])) if _DEBIAN.exists() else []
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        pytest.fail(f"this test needs `{name}`: install it (apt-get install postgresql)", pytrace=False)
    return path
