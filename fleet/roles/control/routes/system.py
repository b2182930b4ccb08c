"""`/v1/system`: what runs, and in which state."""

import importlib.metadata
from collections import Counter, defaultdict
from collections.abc import Sequence

from fleet import DISTRIBUTION
from fleet.adapters.net.own_address import ota_url
from fleet.adapters.redis.client.examination import read_shard_owners
from fleet.adapters.redis.shards.control_lease import ControlLease
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.processes import Processes, ProcessRecord
from fleet.core.permissions import SYSTEM_READ
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.settings import ControlSettings
from fleet.wire.control.shapes import time_of
from fleet.wire.control.system import (
    BrokerState,
    DatabaseState,
    EdgeState,
    ProcessState,
    ShardLag,
    SiteState,
    System,
    WorkerState,
)

_MOST_LAGS = 100


class SystemRoutes:
    """Looks at all parts of the site."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._version = importlib.metadata.version(DISTRIBUTION)
        routes.add("GET /system", self.read, SYSTEM_READ)

    async def read(self) -> System:
        """Return the processes that were seen, their brokers, the owners of the shards, and what waits where."""
        store, database = self._services.store, self._services.database
        revision = await database.revision()
        owners = (await read_shard_owners(store)).owners
        shards = range(store.keys.shards)
        processes = await Processes(store).live()
        messages, events = await Inboxes(store).waiting(shards), await Outbox(store).waiting(shards)
        owned: dict[str, list[int]] = defaultdict(list)
        for shard, worker in owners.items():
            owned[worker].append(shard)
        return System(
            version=self._version,
            database=DatabaseState(kind="sqlite" if database.is_sqlite else "postgresql", revision=revision or ""),
            shards=len(shards),
            shards_without_owner=[shard for shard in shards if shard not in owners],
            workers=[WorkerState(id=worker, shards=found) for worker, found in sorted(owned.items())],
            edges=[_edge(one) for one in await Edges(store).live()],
            processes=[_process(one) for one in processes],
            brokers=_brokers(processes),
            events_waiting=sum(events),
            messages_waiting=sum(messages),
            lags=_lags(messages, events),
            site=_site(self._services.settings),
            leader=await ControlLease.holder(store),
        )


def _site(settings: ControlSettings) -> SiteState:
    if settings.http_public:
        return SiteState(ota_url=f"{settings.http_public}/xiaozhi/ota/", timezone=settings.timezone)
    tls = settings.tls_cert is not None
    port = settings.https_port if tls else settings.http_port
    return SiteState(
        ota_url=ota_url(settings.public_host, settings.http_host, port, tls=tls), timezone=settings.timezone
    )


def _edge(edge: EdgeRecord) -> EdgeState:
    return EdgeState(
        id=edge.id,
        host=edge.host,
        port=edge.port,
        sessions=edge.load,
        stopping=edge.draining,
        voices=list(edge.voices),
    )


def _process(one: ProcessRecord) -> ProcessState:
    return ProcessState(
        id=one.id,
        role=one.role,
        version=one.version,
        since=time_of(one.since),
        faults=one.faults,
        broker=one.broker,
        connected=one.connected,
    )


def _brokers(processes: Sequence[ProcessRecord]) -> list[BrokerState]:
    found = Counter((one.broker, one.connected) for one in processes if one.broker)
    return [
        BrokerState(address=address, connected=found[address, True], away=found[address, False])
        for address in sorted({address for address, _ in found})
    ]


def _lags(messages: Sequence[int], events: Sequence[int]) -> list[ShardLag]:
    waiting = [
        ShardLag(shard=shard, messages=some, events=others)
        for shard, (some, others) in enumerate(zip(messages, events, strict=True))
        if some or others
    ]
    return sorted(waiting, key=lambda one: (-one.messages - one.events, one.shard))[:_MOST_LAGS]
