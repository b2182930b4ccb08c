"""`scripts/bench broker`: what Mosquitto costs for each connection and message, with and without fleet's plugin.

One broker runs without the plugin and lets everybody in, one runs with it; both have the shipped configuration. What is
measured is the broker's own CPU time, so the clients' work does not count. The brokers take turns, so that what else
the machine does falls on both.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fleet.workbench.bench.broker_load import Load
from fleet.workbench.bench.broker_server import Broker, running_broker, version
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.figures import Spread
from fleet.workbench.local_servers.mosquitto import build_plugin


@dataclass(frozen=True, slots=True)
class Setup:
    """One way to connect devices."""

    name: str
    plugin: bool
    subscribing: bool
    """Whether devices subscribe, which real ones do not; without that and without the plugin nothing reaches them."""


SETUPS = (
    Setup("without plugin", plugin=False, subscribing=False),
    Setup("without plugin, devices subscribe", plugin=False, subscribing=True),
    Setup("with plugin", plugin=True, subscribing=False),
)


@dataclass(frozen=True, slots=True)
class BrokerResult:
    """What one setup costs, in microseconds of the broker's CPU."""

    setup: Setup
    connect_us: Spread
    """For one device that connects, with its SUBSCRIBE if it sends one, and with the plugin its presence message."""
    disconnect_us: Spread
    down_us: Spread | None
    """For one message to a device at QoS 0; None where none gets there."""
    up_us: Spread
    """For one message of a device, raised to QoS 1 for the worker, with the worker's acknowledgement."""
    idle_percent: Spread
    """Of one core, while all devices are connected and say nothing."""


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """All that was measured."""

    broker: str
    cases: list[BrokerResult]


@dataclass(frozen=True, slots=True)
class _Round:
    connect: float
    disconnect: float
    down: float | None
    up: float
    idle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerExperiment(Experiment[BrokerFigures]):
    """Rounds in which devices connect, exchange messages, and disconnect; `seconds` is how long they then rest."""

    name: ClassVar[str] = "broker"

    devices: int
    messages: int
    """Each way, in each round."""

    async def measure(self, progress: Progress) -> BrokerFigures:
        with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
            folder = Path(name)
            progress("building the plugin")
            plugin = await build_plugin(folder)
            async with running_broker(folder, None) as without, running_broker(folder, plugin) as with_it:
                rounds: dict[Setup, list[_Round]] = {setup: [] for setup in SETUPS}
                for number in range(self.repeats):
                    for setup in SETUPS:
                        progress(f"{setup.name}, round {number + 1} of {self.repeats}")
                        rounds[setup].append(await self._round(with_it if setup.plugin else without, setup))
                return BrokerFigures(await version(folder), [_result(setup, found) for setup, found in rounds.items()])

    async def _round(self, broker: Broker, setup: Setup) -> "_Round":
        load = Load(broker.port, broker.keys, subscribing=setup.subscribing)
        await load.start()
        presences = self.devices if setup.plugin else 0
        meter = _Meter(broker)
        load.up.expect(presences)
        await load.connect(self.devices)
        if presences:
            await load.up.reach()
        connect = meter.lap()
        await asyncio.sleep(self.seconds)
        idle = meter.lap()
        down = None
        if setup.plugin or setup.subscribing:
            await load.deliver(self.messages)
            down = meter.lap() / self.messages
        await load.report(self.messages)
        up = meter.lap()
        load.up.expect(presences)
        await load.leave()
        if presences:
            await load.up.reach()
        disconnect = meter.lap()
        await load.stop()
        return _Round(
            connect=connect / self.devices,
            disconnect=disconnect / self.devices,
            down=down,
            up=up / self.messages,
            idle=idle / self.seconds if self.seconds else 0.0,
        )


class _Meter:
    """Seconds of CPU of a broker since the last look."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._last = broker.cpu()

    def lap(self) -> float:
        last, self._last = self._last, self._broker.cpu()
        return self._last - last


def _result(setup: Setup, rounds: list[_Round]) -> BrokerResult:
    down = [one.down for one in rounds if one.down is not None]
    return BrokerResult(
        setup=setup,
        connect_us=_us([one.connect for one in rounds]),
        disconnect_us=_us([one.disconnect for one in rounds]),
        down_us=_us(down) if down else None,
        up_us=_us([one.up for one in rounds]),
        idle_percent=Spread.of([one.idle * 100 for one in rounds]),
    )


def _us(seconds: list[float]) -> Spread:
    return Spread.of([value * 1e6 for value in seconds])
