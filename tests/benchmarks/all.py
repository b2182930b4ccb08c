"""`scripts/bench all`: the figures of docs/performance.md, in one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.console import Console

from fleet.workbench.bench.bootstrap import BootstrapExperiment, BootstrapResult
from fleet.workbench.bench.bootstrap_table import show_bootstrap
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.turn import TurnExperiment, TurnResult
from fleet.workbench.bench.turn_table import show_turn
from fleet.workbench.bench.udp import UdpExperiment, UdpFigures
from fleet.workbench.bench.udp_table import show_udp
from tests.benchmarks.peer import PeerExperiment, ServerResult
from tests.benchmarks.scale import ScaleExperiment, ScaleResult
from tests.benchmarks.server_table import show_scale, show_servers


@dataclass(frozen=True, slots=True)
class AllFigures:
    """What each of the benchmarks found."""

    servers: list[ServerResult]
    udp: UdpFigures
    bootstrap: list[BootstrapResult]
    turn: list[TurnResult]
    scale: list[ScaleResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllExperiment(Experiment[AllFigures]):
    """Each benchmark after the other, with windows of the same length."""

    name: ClassVar[str] = "all"

    connected: int
    rates: Sequence[float]
    """Hellos a second."""
    streams: int
    devices: Sequence[int]
    """Known ones."""
    shards: Sequence[int]
    requests: Sequence[float]
    """Bootstraps a second."""
    turns: float
    """A second, of devices and of gateway clients."""
    at_once: Sequence[int]
    """Turns of the gateway."""

    async def measure(self, progress: Progress) -> AllFigures:
        few, s, n = min(self.devices), self.seconds, self.repeats
        servers = PeerExperiment(
            checkout=None, connected=self.connected, rates=self.rates, streams=self.streams, seconds=s, repeats=n
        )
        udp = UdpExperiment(streams=[self.streams], codecs=[False, True], seconds=s, repeats=n)
        bootstrap = BootstrapExperiment(rates=self.requests, devices=few, closed=False, seconds=s, repeats=n)
        turn = TurnExperiment(at_once=self.at_once, rate=self.turns, seconds=s, repeats=n)
        scale = ScaleExperiment(
            devices=self.devices, shards=self.shards, rate=max(self.rates), calls=self.turns, seconds=s, repeats=n
        )
        return AllFigures(
            servers=await servers.measure(progress),
            udp=await udp.measure(progress),
            bootstrap=await bootstrap.measure(progress),
            turn=await turn.measure(progress),
            scale=await scale.measure(progress),
        )


def show_all(console: Console, found: AllFigures) -> None:
    """Print everything."""
    show_servers(console, found.servers)
    show_scale(console, found.scale)
    show_udp(console, found.udp)
    show_bootstrap(console, found.bootstrap)
    show_turn(console, found.turn)
