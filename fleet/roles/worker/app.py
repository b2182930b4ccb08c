"""The worker role."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Protocol

from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.announcements.deliveries import Deliveries
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.operator_calls import OperatorCalls
from fleet.adapters.redis.shards.shard_counts import ShardCounter
from fleet.core.rates import Rate
from fleet.ground.tasks import Ended, keep_running
from fleet.roles.worker.announcements.delivery import AnnouncementDelivery
from fleet.roles.worker.announcements.receipts import ClipReceipts
from fleet.roles.worker.announcements.reminders import ReminderRunner
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.calls.expirer import CallExpirer
from fleet.roles.worker.inbound.dead_edges import DeadEdgeReaper
from fleet.roles.worker.inbound.device_messages import DeviceDispatcher
from fleet.roles.worker.inbound.edge_messages import InboxReader
from fleet.roles.worker.operator_calls import OperatorCallRunner
from fleet.roles.worker.ownership.balancer import ShardBalancer
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.owner_loss import OwnerLossListener
from fleet.roles.worker.ownership.shard import Shard, shard_session
from fleet.roles.worker.ownership.shard_gauges import ShardGauges
from fleet.roles.worker.ownership.waiting_presence import WaitingPresence
from fleet.roles.worker.plugin_counts import PluginCounts
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.roles.worker.sessions.opener import SessionOpener
from fleet.roles.worker.sessions.registration import Registrations
from fleet.roles.worker.sessions.renewals import PasswordRenewals
from fleet.roles.worker.sessions.tool_list_budget import ListBudget
from fleet.roles.worker.turns.remembering import MemoryKeeper
from fleet.roles.worker.turns.turns import WorkerTurns
from fleet.wire import topics

COUNTING_SHARD = 0
"""The worker that owns this shard counts what belongs to no shard."""


class _Watcher(Protocol):
    """Works for the owned shards beside their messages."""

    async def run(self) -> None:
        """Work until cancelled."""


class Worker:
    """Serves a share of the fleet's devices.

    Args:
        resources: Settings, stores, model, keys.
        worker_id: Unique among all processes.
        broker: The MQTT broker.
    """

    def __init__(self, resources: WorkerResources, worker_id: str, broker: MqttAddress) -> None:
        settings = resources.settings
        self.counts: Counter[str] = Counter()
        """Refusals by reason."""
        self._resources = resources
        self._broker = broker
        self._directory = EdgeDirectory(resources.edges, settings.edge_sessions)
        session_opener = SessionOpener(resources, self._directory, self.counts)
        calls = DeviceCalls(resources.calls, resources.reports, Rate.parse(settings.rate_tools), self.counts)
        discovery = Discovery(resources, self.counts)
        turns = WorkerTurns(resources, calls, discovery, self.counts)
        registrations = Registrations(resources, discovery, self.counts)
        self._dispatcher = DeviceDispatcher(resources, session_opener, turns, calls, discovery, registrations)
        name = f"fleet-worker-{worker_id}"
        self._owner_losses = OwnerLossListener(
            broker, lambda: resources.keys.issue("service", name), self._on_owner_lost
        )
        self._plugin = PluginCounts(
            broker,
            lambda: resources.keys.issue("service", f"{name}-counts"),
            lambda: COUNTING_SHARD in self._shards.owned,
            self.counts,
        )
        leases = Leases(resources.store, worker_id, settings.lease_seconds)
        self._shards = ShardBalancer(leases, settings.shards, self._make_shard, self._owner_losses)
        self._inbox = InboxReader(resources.inboxes, lambda: self._shards.owned, session_opener, turns)
        self.gauges = ShardGauges(ShardCounter(resources.store), lambda: self._shards.owned, self._inbox.positions)
        self._renewals = PasswordRenewals(resources, lambda: self._shards.owned)
        queues, receipts = (
            OperatorCalls(resources.store),
            ClipReceipts(Deliveries(resources.store), lambda: self._shards.owned),
        )
        announcements = AnnouncementDelivery(resources, self._directory, receipts, turns.spoken.pauses, turns.kept)
        self._watchers: dict[str, _Watcher] = {
            "operators' calls": OperatorCallRunner(resources, queues, calls, lambda: self._shards.owned, announcements),
            "clip receipts": receipts,
            "call expirer": CallExpirer(resources.calls, lambda: self._shards.owned),
            "dead edges": DeadEdgeReaper(
                resources.sessions, self._directory, lambda: self._shards.owned, session_opener, turns
            ),
            "renewals": self._renewals,
            "memory": MemoryKeeper(resources, lambda: self._shards.owned),
            "reminders": ReminderRunner(resources, announcements, lambda: self._shards.owned),
        }

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._directory.run(), name="edge directory")
            group.create_task(self._owner_losses.run(), name="owner losses")
            group.create_task(self._plugin.run(), name="plugin counts")
            group.create_task(self._shards.run(), name="shards")
            group.create_task(keep_running("inboxes", self._inbox.run, self._inbox.backoff), name="inboxes")
            for name, watcher in self._watchers.items():
                group.create_task(watcher.run(), name=name)
            group.create_task(self.gauges.run(), name="shard gauges")

    async def drain(self, seconds: float) -> None:
        """Hand all shards over to the other workers; wait at most `seconds` for running turns."""
        await self._shards.hand_over(seconds)

    @property
    def lists(self) -> ListBudget:
        """The tool lists that are being read."""
        return self._dispatcher.lists

    @property
    def new_devices(self) -> int | None:
        """Highest number of MACs in one shard that never connected; None before the first check."""
        return max(self._renewals.young.values(), default=None)

    @property
    def ready(self) -> bool:
        """Whether this worker owns shards and receives the messages of all of them."""
        owned = self._shards.owned.values()
        return bool(owned) and all(shard.connected for shard in owned)

    @property
    def connected(self) -> bool:
        """Whether it is connected to the broker."""
        return self._owner_losses.connected

    @property
    def settled(self) -> bool:
        """Whether the worker is ready, or owns no shard because there are more workers than shards."""
        return self.ready or (self._shards.spare and not self._shards.owned)

    def _make_shard(self, number: int, lease: Lease) -> Shard:
        keys, shards = self._resources.keys, self._resources.settings.shards
        return Shard(
            number,
            lease,
            # Issue credentials for each connection: the keys may have changed since the last one.
            lambda shard: shard_session(
                shard, self._broker, keys.issue("service", topics.shard_client_id(number)), shards
            ),
            self,
            self._shards.confirm,
        )

    def take(self, mac: str, payload: bytes) -> asyncio.Future[bool] | None:
        """Begin to take the answer to a call that is awaited; None for what `receive` must handle."""
        return self._dispatcher.awaited.take(mac, payload)

    def expect(self, mac: str, payload: bytes, ended: Ended) -> WaitingPresence:
        """Note a presence as it arrives; it ends an older one of the device that waits."""
        return self._dispatcher.presences.expect(mac, payload, ended)

    def receive(self, shard: Shard, kind: str, mac: str, message: bytes | WaitingPresence) -> Awaitable[None]:
        """Handle one message of a device, of its presence, or of the broker."""
        if kind == "boot":
            self._plugin.plugin_seen()
        return self._dispatcher.receive(shard, kind, mac, message)

    async def _on_owner_lost(self, shard: int, fence: str, released: bool) -> None:
        await self._shards.take_lost(shard, fence, released)
