"""A real Prometheus with the shipped rules, which scrapes processes on the loopback address."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import yaml  # type: ignore[import-untyped]

from fleet.ground.errors import Unavailable
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.process import find_program, run_program
from tests.dashboard.board import Query
from tests.support.ports import free_port

SHIPPED = Path(__file__).parents[2] / "deploy/prometheus"
SCRAPE_SECONDS = 5
"""The shipped configuration has 15; a run of minutes needs more points."""
SITE = "load"
_READY_SECONDS = 240.0

Targets = Mapping[str, Sequence[tuple[str, int]]]
"""For each role the names and metrics ports of its processes."""


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one series by time; times without a value are missing."""

    name: str
    points: tuple[tuple[float, float], ...]


def configure(targets: Targets, own_port: int) -> dict[str, Any]:
    """Return the shipped configuration with the roles' addresses here in place of the names of containers.

    What DNS finds in compose is listed; `instance` is a process's name, which tells more than its port.
    """
    config: dict[str, Any] = yaml.safe_load((SHIPPED / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"}
    config["rule_files"] = [str(SHIPPED / name) for name in config["rule_files"]]
    fleet, own = config["scrape_configs"]
    for name in ("dns_sd_configs", "relabel_configs"):
        del fleet[name]
    fleet["static_configs"] = [
        {"targets": [f"{LOOPBACK}:{port}"], "labels": {"role": role, "site": SITE, "instance": instance}}
        for role, processes in targets.items()
        for instance, port in processes
    ]
    own["static_configs"] = [{"targets": [f"{LOOPBACK}:{own_port}"]}]
    return config


class Prometheus:
    """Asks a Prometheus.

    Args:
        client: Knows where it is.
    """

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def read(self, query: Query, begin: float, end: float, step: float, window: float) -> list[Series]:
        """Return the series of a query in a span of time, by name; `window` is that of its rates."""
        asked: dict[str, str | float] = {"query": query.at(window), "start": begin, "end": end, "step": step}
        found = (await self._ask("/api/v1/query_range", asked))["result"]
        series = [Series(query.name(one["metric"]), _points(one["values"])) for one in found]
        return sorted((one for one in series if one.points), key=lambda one: one.name)

    async def alerts(self) -> list[tuple[str, str]]:
        """Return the name and the state of every alert that is pending or firing."""
        found = (await self._ask("/api/v1/alerts", {}))["alerts"]
        return sorted((one["labels"]["alertname"], one["state"]) for one in found)

    async def down(self) -> list[str]:
        """Return the processes that cannot be scraped now."""
        found = (await self._ask("/api/v1/targets", {"state": "active"}))["activeTargets"]
        return [one["labels"]["instance"] for one in found if one["health"] != "up"]

    async def _ask(self, path: str, asked: Mapping[str, str | float]) -> dict[str, Any]:
        answer = await self._client.get(path, params=dict(asked))
        body: dict[str, Any] = answer.json()
        if body.get("status") != "success":
            raise Unavailable(f"Prometheus does not answer {asked}: {body.get('error')}")
        data: dict[str, Any] = body["data"]
        return data


def _points(values: Sequence[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    read = ((float(at), float(value)) for at, value in values)
    return tuple((at, value) for at, value in read if math.isfinite(value))


@asynccontextmanager
async def running(targets: Targets, folder: Path) -> AsyncIterator[Prometheus]:
    """Run a Prometheus beside the block; it is ready when the block begins.

    Raises:
        ConfigError: It is not installed.
        Unavailable: It did not start.
    """
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(configure(targets, port), sort_keys=False), encoding="utf-8")
    command = [
        find_program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=warn",
    ]
    async with (
        run_program("Prometheus", command, folder / "prometheus.log"),
        httpx2.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", timeout=240, trust_env=False) as client,
    ):
        await _until_ready(client)
        yield Prometheus(client)


async def _until_ready(client: httpx2.AsyncClient) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not await _is_ready(client):
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise Unavailable(f"Prometheus was not ready within {_READY_SECONDS:g} s") from None


async def _is_ready(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.get("/-/ready")).status_code == 200
    except httpx2.HTTPError:
        return False
