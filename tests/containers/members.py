"""The containers of a site as the parts of a chaos run: the same faults, the same judge."""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.chaos.members import Ensemble, Member
from tests.chaos.plan import Target
from tests.containers.site import PASSWORD, Site, address

_READY_PORTS = {"worker": 9464, "edge": 9464, "api": 8000, "gateway": 9400}
_PORTS = {"mosquitto": 1883, "redis": 6379}


class ContainerMember(Member):
    """A container of the site.

    SIGKILL hits the program inside, so that the engine's restart policy has to bring it back. SIGTERM is `docker stop`,
    SIGSTOP `docker pause`.
    """

    def __init__(self, site: Site, service: str, number: int, out: Path) -> None:
        super().__init__(f"{service}-{number}", [], out / f"{service}-{number}.log", {})
        self._site, self._service, self._number = site, service, number
        self._init = 0
        self._address = ""
        self._stopping: subprocess.Popen[bytes] | None = None

    @property
    def container(self) -> Any:
        return self._site.container(self._service, self._number)

    @property
    def pid(self) -> int:
        return self._init

    @property
    def alive(self) -> bool:
        """Whether what ran at the last start still does: the restart policy may have brought another process."""
        return self._init != 0 and Path(f"/proc/{self._init}").exists()

    @property
    def frozen(self) -> bool:
        return False

    def is_ready(self) -> bool:
        self._look()
        if not self._address:
            return False
        if self._service in _PORTS:
            return _accepts(self._address, _PORTS[self._service])
        return _says_ready(self._address, _READY_PORTS[self._service])

    def start(self) -> None:
        if self._stopping:
            self._stopping.wait()
            self._stopping = None
        self.container.start()
        self._look()

    def send(self, number: signal.Signals) -> None:
        if number == signal.SIGSTOP:
            self.container.pause()
        elif number == signal.SIGCONT:
            self.container.unpause()
        elif number == signal.SIGKILL:
            self._look()
            # The first process of the container is Docker's init, the program its child.
            children = Path(f"/proc/{self._init}/task/{self._init}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGKILL)
        else:
            self._stopping = subprocess.Popen(["docker", "stop", self.container.name], stdout=subprocess.DEVNULL)

    def order(self, order: Mapping[str, object]) -> None:
        """Faults at a line of a log need a worker in a puppet; a container has none."""

    def discard(self) -> None:
        """Keep its log; the site ends it."""
        if self._stopping:
            self._stopping.wait()
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
