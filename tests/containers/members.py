"""The containers of a site as the parts of a chaos run: the same faults, the same judge."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.chaos.members import Ensemble, Member
from tests.chaos.plan import Target
from tests.containers.site import PASSWORD, Site, address

_READY_PORTS = {"worker": 9464, "edge": 9464, "api": 8000, "gateway": 9400}
_UNKNOWN = -1
"""The process of a container that was asked to start."""
_PORTS = {"mosquitto": 1883, "redis": 6379}


class ContainerMember(Member):
    """A container of the site.

    SIGKILL hits the program inside, so that the engine's restart policy has to bring it back. SIGTERM is `docker stop`,
    SIGSTOP `docker pause`.
    """

    def __init__(self, site: Site, service: str, number: int, out: Path) -> None:
        name = f"{service}-{number}"
        super().__init__(name, [], out / f"{name}.log", {})
        self._site, self._service, self._number = site, service, number
        self._init = 0
        self._address = ""
        self._thread = ThreadPoolExecutor(1, name)
        self._last: Future[None] = self._thread.submit(lambda: None)

    @property
    def container(self) -> Any:
        return self._site.container(self._service, self._number)

    @property
    def pid(self) -> int:
        return self._init

    @property
    def alive(self) -> bool:
        """Whether what ran at the last start still does: the restart policy may have brought another process."""
        return self._init == _UNKNOWN or (self._init != 0 and Path(f"/proc/{self._init}").exists())

    @property
    def frozen(self) -> bool:
        return False

    def is_ready(self) -> bool:
        if not self._last.done():
            return False
        self._look()
        if not self._address:
            return False
        if self._service in _PORTS:
            return _accepts(self._address, _PORTS[self._service])
        return _says_ready(self._address, _READY_PORTS[self._service])

    def start(self) -> None:
        self._init = _UNKNOWN
        self._ask(lambda: self.container.start())

    def send(self, number: signal.Signals) -> None:
        work = {signal.SIGSTOP: self._pause, signal.SIGCONT: self._go_on, signal.SIGKILL: self._kill}
        self._ask(work.get(number, self._end))

    def _ask(self, work: Callable[[], None]) -> None:
        """Let a thread do it after what was asked before: the engine takes seconds, and devices talk in this one."""
        self._last = self._thread.submit(work)

    def _pause(self) -> None:
        self.container.pause()

    def _go_on(self) -> None:
        self.container.unpause()

    def _kill(self) -> None:
        self._look()
        # The first process of the container is Docker's init, the program its child.
        children = Path(f"/proc/{self._init}/task/{self._init}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

    def _end(self) -> None:
        self._look()
        subprocess.run(["docker", "stop", self.container.name], stdout=subprocess.DEVNULL, check=True)

    def order(self, order: Mapping[str, object]) -> None:
        """Faults at a line of a log need a worker in a puppet; a container has none."""

    def discard(self) -> None:
        """Keep its log; the site ends it."""
        self._thread.shutdown()
        self._last.result()
        self.log.write_bytes(self.container.logs())

    def _look(self) -> None:
        container = self.container
        self._init = int(container.attrs["State"]["Pid"])
        self._address = address(container) if self._init else ""


@dataclass(slots=True)
class Containers(Ensemble):
    """All containers of a site that conversations need."""

    gateway: Member

    @property
    def all(self) -> list[Member]:
        return [self.redis, self.broker, self.api, *self.workers, *self.edges, self.gateway]

    def find(self, target: Target, which: int) -> Member:
        if target == "gateway":
            return self.gateway
        return Ensemble.find(self, target, which)


def containers(site: Site, out: Path) -> Containers:
    """Return the containers of a site that runs."""

    def one(service: str, number: int = 1) -> ContainerMember:
        return ContainerMember(site, service, number, out)

    redis = address(site.container("redis"))
    return Containers(
        workers=[one("worker", 1), one("worker", 2)],
        edges=[one("edge")],
        broker=one("mosquitto"),
        redis=one("redis"),
        api=one("api"),
        gateway=one("gateway"),
        ota_url=site.ota,
        redis_url=f"redis://:{PASSWORD}@{redis}:6379/0",
    )


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _says_ready(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=3)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
