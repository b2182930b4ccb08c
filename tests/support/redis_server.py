"""A real Redis for tests: in a container where Docker runs, otherwise the `redis-server` of this machine."""

from pathlib import Path

from tests.support.container import ServerContainer, docker_answers
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, find_program

IMAGE = "redis:7-alpine"


class RedisServer:
    """One Redis on its own port.

    Args:
        directory: For its log and, if durable, its data.
        durable: Whether it writes every command to disk (append-only file), so that data survives `kill` and `restart`.
            Otherwise it forgets everything when it ends.
    """

    def __init__(self, directory: Path, *, durable: bool = False) -> None:
        self.host = LOOPBACK
        self.port = free_port()
        keep = ["--save", "", "--appendonly", "yes" if durable else "no", "--appendfsync", "always"]
        self._engine = self._in_container(keep) if docker_answers() else self._as_process(keep, directory)

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    @property
    def log(self) -> str:
        return self._engine.log

    def start(self) -> None:
        self._engine.start()

    def stop(self) -> None:
        """End it in order; `start` brings it back on the same port."""
        self._engine.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._engine.kill()

    def discard(self) -> None:
        """End it for good."""
        self._engine.discard()

    def _in_container(self, keep: list[str]) -> ServerContainer:
        return ServerContainer(IMAGE, ["redis-server", *keep], (6379, self.port), b"PING\r\n")

    def _as_process(self, keep: list[str], directory: Path) -> ServerProcess:
        program = find_program("redis-server", "redis-server")
        place = ["--bind", self.host, "--port", str(self.port), "--dir", str(directory)]
        return ServerProcess([program, *place, *keep], self.port, directory / "redis.log")
