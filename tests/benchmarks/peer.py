"""`scripts/bench peer CHECKOUT`: fleet and another gateway behind the same load, in turn.

The other one is the Node gateway xinnan-tech/xiaozhi-mqtt-gateway, in a checkout in which `npm install` was run. It is
one process with a broker of its own, and hands audio to a chat server. A stub stands for that; its CPU does not count.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.testbed import Cost, Site, Window, testbed
from fleet.workbench.bench.udp import UdpExperiment
from tests.benchmarks.operations import DUPLEX, Found, Plan, operations
from tests.benchmarks.sites import fleet_up, node_gateway

FLEET, UP, PEER = "fleet", "fleet up", "peer"


@dataclass(frozen=True, slots=True)
class ServerResult:
    """All that was measured with one server."""

    server: str
    operations: dict[str, Cost]
    memory: dict[str, Spread]
    """Bytes of a connected device that does nothing, by part: what the resident memory grew by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerExperiment(Experiment[list[ServerResult]]):
    """The same load on each server in turn, `repeats` times."""

    name: ClassVar[str] = "peer"

    checkout: Path | None
    """Of the peer; None: fleet alone."""
    connected: int
    rates: Sequence[float]
    """Hellos with goodbyes a second."""
    streams: int

    async def measure(self, progress: Progress) -> list[ServerResult]:
        servers: dict[str, Callable[[], AbstractAsyncContextManager[Site]]] = {
            FLEET: partial(testbed, edge=True),
            UP: fleet_up,
        }
        if self.checkout:
            servers[PEER] = partial(node_gateway, self.checkout)
        plan = Plan(connected=self.connected, rates=self.rates, streams=self.streams, seconds=self.seconds)
        found: dict[str, list[Found]] = defaultdict(list)
        for number in range(self.repeats):
            for name, server in servers.items():
                progress(f"round {number + 1} of {self.repeats}: {name}")
                async with server() as site:
                    found[name].append(await operations(site, plan))
            if self.streams:
                progress(f"round {number + 1} of {self.repeats}: fleet's audio both ways")
                found[FLEET][-1].windows[DUPLEX] = await self._duplex()
        return [merge(name, rounds) for name, rounds in found.items()]

    async def _duplex(self) -> Window:
        """Return pairs of packets at the real edge; a sentence that is ready stands for the voice."""
        udp = UdpExperiment(streams=[self.streams], codecs=[False], seconds=self.seconds, repeats=1)
        [case] = (await udp.measure(lambda _: None)).cases
        cpu = case.both.us.median * case.both.down / 1e6
        return Window(self.seconds, {"edge": cpu, "all": cpu}, case.both.down, case.lost, [])


def merge(name: str, rounds: list[Found]) -> ServerResult:
    """Return the figures of one server over all rounds."""
    costs = {what: Cost.of([found.windows[what] for found in rounds]) for what in rounds[0].windows}
    memory = {part: Spread.of([found.memory[part] for found in rounds]) for part in rounds[0].memory}
    return ServerResult(name, costs, memory)
