"""`scripts/bench udp`: what the edge's audio costs, with and without codecs.

The edge runs in a process of its own, so its process time is the edge's alone, threads included. Each case goes through
four phases: sessions that do nothing, uplink alone, uplink and downlink together, downlink alone; each is measured in
several windows after a pause in which it settles.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fleet.workbench.bench.control import Child, child
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Percentiles, Spread
from fleet.workbench.bench.streams import PACKETS_A_SECOND

SETTLE_SECONDS = 0.4
_SHORTEST_SENTENCE = 1.5
_IDLE_PART = 0.5
"""An idle edge is measured for a shorter time: nothing happens in it."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a case."""

    us: Spread
    """CPU time of the edge in microseconds a packet; with both directions, for one up and one down."""
    cpu_percent: Spread
    """Of one core."""
    up: int
    """Packets that the edge received in all windows."""
    down: int
    """Packets that the devices received."""
    on_rate: float
    """Part of the packets that frames of this length ask for, in the direction that did worse."""
    load_percent: float
    """Of one core: what the devices' process used."""
    dropped: dict[str, int]
    """Packets that the edge did not use, by reason."""


@dataclass(frozen=True, slots=True)
class UdpResult:
    """All phases of so many streams."""

    streams: int
    codecs: bool
    idle: Phase
    up: Phase
    both: Phase
    down: Phase
    late_ms: Percentiles
    """How late packets were sent with both directions busy, in a window of its own, twice as long."""
    heard: int
    """Devices that received audio under their key."""
    lost: int
    """Packets between others that did not reach the devices."""


@dataclass(frozen=True, slots=True)
class _Window:
    """What happened between two looks at both processes."""

    seconds: float
    cpu: float
    load_cpu: float
    up: int
    down: int
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True)
class BarePathResult:
    """The bare path with so many streams: see `fleet.workbench.bench.bare_path`."""

    streams: int
    both: Phase


@dataclass(frozen=True, slots=True)
class UdpFigures:
    """All that was measured."""

    bare_paths: list[BarePathResult]
    cases: list[UdpResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpExperiment(Experiment[UdpFigures]):
    """Duplex streams of audio, with several numbers of streams, with or without codecs."""

    name: ClassVar[str] = "udp"

    streams: Sequence[int]
    codecs: Sequence[bool]

    async def measure(self, progress: Progress) -> UdpFigures:
        bare_paths = [await _Run(self, count, False, progress).bare_path() for count in self.streams]
        cases = [await _Run(self, count, codecs, progress).edge() for codecs in self.codecs for count in self.streams]
        return UdpFigures(bare_paths, cases)


class _Run:
    """One case."""

    def __init__(self, experiment: UdpExperiment, streams: int, codecs: bool, progress: Progress) -> None:
        self._experiment = experiment
        self._streams = streams
        self._codecs = codecs
        self._progress = progress
        self._what = f"{streams} streams {'with' if codecs else 'without'} codecs"

    async def bare_path(self) -> BarePathResult:
        async with (
            child("fleet.workbench.bench.bare_path", "bare path") as bare_path,
            child("fleet.workbench.bench.udp_load", "load") as load,
        ):
            await self._open(bare_path, load)
            await load.ask("send")
            await bare_path.ask("speak")
            both = await self._phase("bare path", bare_path, load)
            return BarePathResult(self._streams, self._summary(both, 1, 1))

    async def edge(self) -> UdpResult:
        codec = "real" if self._codecs else "prepared"
        async with (
            child("fleet.workbench.bench.edge", "edge", codec) as edge,
            child("fleet.workbench.bench.udp_load", "load") as load,
        ):
            await self._open(edge, load)
            idle = await self._phase("idle", edge, load, part=_IDLE_PART)
            await load.ask("send")
            up = await self._phase("uplink", edge, load)
            await edge.ask("speak", streams=self._streams, sentences=self._sentences)
            both = await self._phase("both ways", edge, load)
            self._progress(f"{self._what}: lateness")
            late_ms = (await edge.ask("watch", seconds=self._experiment.seconds * 2))["late_ms"]
            end = await load.ask("rest")
            down = await self._phase("downlink", edge, load)
            return UdpResult(
                streams=self._streams,
                codecs=self._codecs,
                idle=self._summary(idle, 0, 0),
                up=self._summary(up, 1, 0),
                both=self._summary(both, 1, 1),
                down=self._summary(down, 0, 1),
                late_ms=Percentiles.of(late_ms),
                heard=end["heard"],
                lost=end["lost"],
            )

    async def _open(self, server: Child, load: Child) -> None:
        port = (await server.ask("open", streams=self._streams))["port"]
        await load.ask("open", streams=self._streams, port=port)

    @property
    def _sentences(self) -> int:
        """Enough for the two phases with speech."""
        speaking = 2 * (SETTLE_SECONDS + (self._experiment.repeats + 1) * (self._experiment.seconds + 0.5)) + 5
        return int(speaking / _SHORTEST_SENTENCE) + 2

    async def _phase(self, what: str, edge: Child, load: Child, part: float = 1.0) -> list[_Window]:
        self._progress(f"{self._what}: {what}")
        await asyncio.sleep(SETTLE_SECONDS)
        return [await _window(edge, load, self._experiment.seconds * part) for _ in range(self._experiment.repeats)]

    def _summary(self, windows: Sequence[_Window], ups: int, downs: int) -> Phase:
        asked = self._streams * PACKETS_A_SECOND * sum(window.seconds for window in windows)
        up, down = sum(window.up for window in windows), sum(window.down for window in windows)
        # A pair is one packet up and one down.
        counts = [(window.up * ups + window.down * downs) / max(ups + downs, 1) for window in windows]
        reasons = {reason for window in windows for reason in window.dropped}
        return Phase(
            us=Spread.of([w.cpu / count * 1e6 if count else 0.0 for w, count in zip(windows, counts, strict=True)]),
            cpu_percent=Spread.of([window.cpu / window.seconds * 100 for window in windows]),
            up=up,
            down=down,
            on_rate=min([1.0, *([up / asked] if ups else []), *([down / asked] if downs else [])]),
            load_percent=100 * sum(w.load_cpu for w in windows) / sum(w.seconds for w in windows),
            dropped={reason: sum(w.dropped.get(reason, 0) for w in windows) for reason in sorted(reasons)},
        )


async def _window(edge: Child, load: Child, seconds: float) -> _Window:
    devices, before = await load.ask("count"), await edge.ask("count")
    await asyncio.sleep(seconds)
    after, devices_after = await edge.ask("count"), await load.ask("count")
    counted = _differences(before["counters"], after["counters"])
    return _Window(
        seconds=after["at"] - before["at"],
        cpu=after["cpu"] - before["cpu"],
        load_cpu=devices_after["cpu"] - devices["cpu"],
        up=counted.pop("received", 0),
        down=devices_after["received"] - devices["received"],
        dropped=counted,
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    changes = {reason: count - before.get(reason, 0) for reason, count in after.items()}
    return {reason: change for reason, change in changes.items() if change}
