"""The probes of a container, asked as kubelet asks them."""

import socket
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.support.kubernetes_schemas import Manifest

REFUSED = 0


@dataclass(slots=True)
class Probe:
    """One probe, and how often it succeeded or failed in a row.

    Args:
        spec: Its part of the manifest.
        host: Address of the pod.
        ports: The container's ports by their names.
        container: Of the engine.
    """

    spec: Manifest
    host: str
    ports: dict[str, int]
    container: Any
    due: float
    successes: int = 0
    failures: int = 0

    @property
    def passed(self) -> bool:
        """Whether it succeeded often enough."""
        return self.successes >= int(self.spec.get("successThreshold", 1))

    @property
    def failed(self) -> bool:
        """Whether it failed often enough."""
        return self.failures >= int(self.spec.get("failureThreshold", 3))

    def ask_if_due(self) -> bool:
        """Ask when its time has come; return whether it was asked."""
        if time.monotonic() < self.due:
            return False
        self.due = time.monotonic() + self.spec.get("periodSeconds", 10)
        if self.succeeds():
            self.successes, self.failures = self.successes + 1, 0
        else:
            self.successes, self.failures = 0, self.failures + 1
        return True

    def succeeds(self) -> bool:
        if "httpGet" in self.spec:
            return 200 <= self.status() < 400
        if "tcpSocket" in self.spec:
            return self._accepts(self.ports[self.spec["tcpSocket"]["port"]])
        return bool(self.container.exec_run(self.spec["exec"]["command"]).exit_code == 0)

    def status(self) -> int:
        """Return the status of the answer to an `httpGet`, REFUSED without one in time."""
        wanted = self.spec["httpGet"]
        connection = HTTPConnection(self.host, self.ports[wanted["port"]], timeout=self._timeout)
        try:
            connection.request("GET", wanted["path"])
            return connection.getresponse().status
        except (OSError, HTTPException):
            return REFUSED
        finally:
            connection.close()

    def _accepts(self, port: int) -> bool:
        try:
            socket.create_connection((self.host, port), timeout=self._timeout).close()
        except OSError:
            return False
        return True

    @property
    def _timeout(self) -> float:
        return float(self.spec.get("timeoutSeconds", 1))


def probes_of(container: Manifest, host: str, running: Any) -> dict[str, Probe]:
    """Return the probes of a container that begins now, by `startup`, `readiness` and `liveness`."""
    ports = {one["name"]: one["containerPort"] for one in container.get("ports", [])}
    now = time.monotonic()
    return {
        kind: Probe(spec, host, ports, running, now + spec.get("initialDelaySeconds", 0))
        for kind in ("startup", "readiness", "liveness")
        if (spec := container.get(f"{kind}Probe"))
    }
