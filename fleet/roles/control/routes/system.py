"""`/v1/system`: what runs, and in which state."""

import importlib.metadata
from collections import defaultdict

from fleet import DISTRIBUTION
from fleet.adapters.net.own_address import ota_url
from fleet.adapters.redis.client.examination import read_shard_owners
from fleet.adapters.redis.shards.control_lease import ControlLease
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.events import Outbox
from fleet.core.permissions import SYSTEM_READ
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.settings import ControlSettings
from fleet.wire.control.system import DatabaseState, EdgeState, SiteState, System, WorkerState


class SystemRoutes:
    """Looks at all parts of the site."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._version = importlib.metadata.version(DISTRIBUTION)
        routes.add("GET /system", self.read, SYSTEM_READ)

    async def read(self) -> System:
        """Return the processes that were seen, the owners of the shards, and how far control lags behind."""
        store, database = self._services.store, self._services.database
        revision = await database.revision()
        owners = (await read_shard_owners(store)).owners
        shards = range(store.keys.shards)
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
            events_waiting=await Outbox(store).waiting(shards),
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
    return EdgeState(id=edge.id, host=edge.host, port=edge.port, sessions=edge.load, stopping=edge.draining)
