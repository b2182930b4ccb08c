"""The worker role."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from fleet.core.rates import Rate
from fleet.link.mqtt_url import MqttAddress
from fleet.store.census import Census
from fleet.store.leases import Leases
from fleet.store.owner import Owner
from fleet.wire import topics
from fleet.worker.calls import DeviceCalls
from fleet.worker.census import Figures
from fleet.worker.directory import EdgeDirectory
from fleet.worker.discovery import Discovery
from fleet.worker.frames import Frames
from fleet.worker.hello import Receptionist
from fleet.worker.letters import Letters
from fleet.worker.losses import Losses
from fleet.worker.orphans import Orphans
from fleet.worker.plugin_counts import PluginCounts
from fleet.worker.registration import Registrations
from fleet.worker.renewals import WorkerRenewals
from fleet.worker.resources import Resources
from fleet.worker.shard import Shard, shard_session
from fleet.worker.shards import Shards
from fleet.worker.sweeper import Sweeper
from fleet.worker.tool_budget import ListBudget
from fleet.worker.turns import Turns

COUNTING_SHARD = 0
"""Its owner counts what belongs to no shard."""


class Worker:
    """Serves a share of the fleet's devices.

    Args:
        resources: What it works with.
        worker_id: Different from every other process's.
        broker: Where the devices' messages come from.
    """

    def __init__(self, resources: Resources, worker_id: str, broker: MqttAddress) -> None:
        settings = resources.settings
        self.counts: Counter[str] = Counter()
        """What was refused, by reason."""
        self._resources = resources
        self._broker = broker
        self._directory = EdgeDirectory(resources.edges, settings.edge_sessions)
        receptionist = Receptionist(resources, self._directory, self.counts)
        calls = DeviceCalls(resources.calls, resources.reports, Rate.parse(settings.rate_tools), self.counts)
        discovery = Discovery(resources, self.counts)
        turns = Turns(resources, calls, discovery, self.counts)
        registrations = Registrations(resources, discovery, self.counts)
        self._frames = Frames(resources, receptionist, turns, calls, discovery, registrations)
        name = f"fleet-worker-{worker_id}"
        self._losses = Losses(broker, lambda: resources.keys.issue("service", name), self._lost)
        self._plugin = PluginCounts(
            broker,
            lambda: resources.keys.issue("service", f"{name}-counts"),
            lambda: COUNTING_SHARD in self._shards.owned,
            self.counts,
        )
        leases = Leases(resources.store, worker_id, settings.lease_seconds)
        self._shards = Shards(leases, settings.shards, self._make_shard, self._losses)
        self._letters = Letters(resources.mailboxes, lambda: self._shards.owned, receptionist, turns)
        self.figures = Figures(Census(resources.store), lambda: self._shards.owned, self._letters.positions)
        self._renewals = WorkerRenewals(resources, lambda: self._shards.owned)
        self._watchers: Mapping[str, Sweeper | Orphans | WorkerRenewals] = {
            "sweeper": Sweeper(resources.calls, lambda: self._shards.owned),
            "orphans": Orphans(resources.sessions, self._directory, lambda: self._shards.owned, receptionist, turns),
            "renewals": self._renewals,
        }

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._directory.run(), name="edge directory")
            group.create_task(self._losses.run(), name="shard losses")
            group.create_task(self._plugin.run(), name="plugin counts")
            group.create_task(self._shards.run(), name="shards")
            group.create_task(self._letters.run(), name="letters")
            for name, watcher in self._watchers.items():
                group.create_task(watcher.run(), name=name)
            group.create_task(self.figures.run(), name="census")

    async def drain(self, seconds: float) -> None:
        """Hand everything over to the other workers; turns that run are waited for, at most so long."""
        await self._shards.leave(seconds)

    @property
    def lists(self) -> ListBudget:
        """The tool lists that are being read."""
        return self._frames.lists

    @property
    def new_devices(self) -> int | None:
        """How many MACs of one shard never connected, in the shard with the most; None while none was looked at."""
        return max(self._renewals.young.values(), default=None)

    @property
    def ready(self) -> bool:
        """Whether this worker owns shards and hears all of their devices."""
        owned = self._shards.owned.values()
        return bool(owned) and all(shard.connected for shard in owned)

    @property
    def connected(self) -> bool:
        """Whether it reaches the broker."""
        return self._losses.connected

    @property
    def settled(self) -> bool:
        """Whether it is ready, or owns nothing because there are more workers than shards."""
        return self.ready or (self._shards.spare and not self._shards.owned)

    def _make_shard(self, number: int, owner: Owner) -> Shard:
        keys, shards = self._resources.keys, self._resources.settings.shards
        return Shard(
            number,
            owner,
            # Each connection has credentials of its own, as keys may have changed since the last one.
            lambda shard: shard_session(
                shard, self._broker, keys.issue("service", topics.shard_client_id(number)), shards
            ),
            self._receive,
            self._shards.confirm,
        )

    async def _receive(self, shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        if kind == "boot":
            self._plugin.meet()
        await self._frames.receive(shard, kind, mac, payload)

    async def _lost(self, shard: int, fence: str, released: bool) -> None:
        await self._shards.lost(shard, fence, released)
