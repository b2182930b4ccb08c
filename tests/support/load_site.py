"""Every role as processes whose metrics and traces are watched: two workers, two edges, an api, a gateway, a front."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, OperatorTokens
from tests.support.mosquitto_server import MosquittoServer
from tests.support.otlp_receiver import OtlpReceiver
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts, running
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, role_site
from tests.support.scraped import Scraped, ready, scrape, together
from tests.support.until import until

REFUSED = "02:00:00:00:00:66"
"""A device that is not admitted."""
READY_SECONDS = 120.0
FIGURES_SECONDS = 60.0
"""Longest wait for a figure; workers count every five seconds."""
_PATIENT = {"FLEET_TOOL_SECONDS": "100", "FLEET_TURN_SECONDS": "100", "FLEET_IDLE_SECONDS": "110"}
"""The load decides how long a call waits, not a limit."""


class LoadSite:
    """The processes; what they tell is read from their ports.

    Args:
        site: Broker and Redis.
        plain: A broker without our plugin, for the front.
        collector: Takes the traces, if there is one.
    """

    def __init__(self, site: RoleSite, plain: MosquittoServer, collector: OtlpReceiver | None) -> None:
        self.site = site
        self.ports: dict[str, int] = {}
        """The port for metrics of each process, by its name: `worker-1`."""
        self.front_port, gateway = free_port(), free_port()
        self.gateway_url = f"ws://{LOOPBACK}:{gateway}"
        self._traced = {"FLEET_OTLP_ENDPOINT": collector.url} if collector else {}
        tokens = site.directory / "tokens"
        self.token = OperatorTokens(tokens).add("load", frozenset({DEVICES_INPUT}))
        self._workers = [self._worker(number) for number in (1, 2)]
        for number in (1, 2):
            site.edge(**_PATIENT, **self._watched(f"edge-{number}"))
        http = {"FLEET_HTTP_HOST": LOOPBACK, "FLEET_HTTP_PORT": str(site.http_port)}
        site.start("api", FLEET_OPERATOR_TOKENS_FILE=str(tokens), **http, **self._watched("api"))
        site.start("gateway", CLOUD_HOST=LOOPBACK, CLOUD_PORT=str(gateway), **self._watched("gateway"))
        place = {"FLEET_MQTT_HOST": LOOPBACK, "FLEET_MQTT_PORT": str(self.front_port)}
        site.start("front", **place, **self._watched("front"), **{"FLEET_MQTT_URL": plain.url})

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self.site.http_port}"

    def wait_ready(self) -> None:
        """Return when every role says that it is ready, and the shards are spread."""
        until(lambda: all(ready(port) for port in self.ports.values()), READY_SECONDS)
        until(lambda: self.site.edges() == 2 and accepts(self.site.http_port), READY_SECONDS)
        self.site.until_spread(8, 8, seconds=READY_SECONDS)

    def scrape(self, role: str) -> Scraped:
        """Return what all processes of a role tell now."""
        return together(scrape(port) for name, port in self.ports.items() if name.startswith(role))

    def scrape_all(self) -> dict[str, Scraped]:
        return {role: self.scrape(role) for role in ("worker", "edge", "api", "gateway", "front")}

    def until_shown(self, role: str, least: float, series: str, most: float | None = None, **labels: str) -> None:
        """Return when the processes of a role show a value in a range: exactly `least` without `most`."""
        top = least if most is None else most
        until(lambda: least <= self.scrape(role).value(series, **labels) <= top, FIGURES_SECONDS)

    def until_discovered(self, mac: str) -> None:
        """Return when a worker knows a device's tools."""
        until(
            lambda: any(_discovered(line, mac) for role in self.site.roles for line in list(role.lines)),
            FIGURES_SECONDS,
        )

    def restart_worker(self, number: int) -> None:
        """Let a worker, 1 or 2, end in order, and start it anew at the same port."""
        old = self._workers[number - 1]
        old.send(signal.SIGTERM)
        assert old.wait() == 0
        self._workers[number - 1] = self._worker(number)
        until(lambda: ready(self.ports[f"worker-{number}"]), READY_SECONDS)

    def _worker(self, number: int) -> RoleProcess:
        return self.site.worker(FLEET_REFUSED_DEVICES=REFUSED, **_PATIENT, **self._watched(f"worker-{number}"))

    def _watched(self, name: str) -> dict[str, str]:
        port = self.ports.setdefault(name, free_port())
        place = {"FLEET_METRICS_PORT": str(port), "FLEET_METRICS_HOST": LOOPBACK}
        return {**place, **self._traced, "FLEET_LANGUAGE": "en"}


def _discovered(line: dict[str, object], mac: str) -> bool:
    return line["message"] == "tools discovered" and line.get("device") == mac


@contextmanager
def load_site(directory: Path, models: str, collector: OtlpReceiver | None = None) -> Iterator[LoadSite]:
    """Start everything, and end it with the block."""
    (directory / "plain").mkdir()
    with role_site(directory, models) as site, running(MosquittoServer(directory / "plain")) as plain:
        yield LoadSite(site, plain, collector)
