"""The site under test: its settings, its broker and Redis, and the doctor's own devices."""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleet.adapters.files import endpoints
from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.client.store import Store
from fleet.core.device_facts import DOCTOR
from fleet.ground.errors import ConfigError, FleetError
from fleet.ground.settings import Settings
from fleet.ground.settings.stored import restore
from fleet.operations.doctor.ask_bootstrap import BootstrapReply
from fleet.run.resources import read_keys
from fleet.wire.identity import CredentialKeys, Credentials

Clock = Callable[[], datetime]

_BOOTSTRAP_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class SiteUnderTest:
    """The data that all examinations share.

    `up`: a `fleet up` runs on this machine, and `settings` has its addresses. A part that is None could not be opened,
    or is not set; `faults` has the reason under the name of the setting.
    """

    settings: Settings
    up: bool
    source: str
    """Whose settings these are."""
    pid: int
    """Of the `fleet up`; 0 if none runs, or if it is not known."""
    keys: CredentialKeys | None
    broker: MqttAddress | None
    store: Store | None
    faults: dict[str, FleetError]
    bootstrap: "asyncio.Future[BootstrapReply]"
    """The answer of bootstrap to the doctor's first device; the examination of the api sets it."""
    macs: tuple[str, ...] = field(default_factory=lambda: tuple(_invent() for _ in range(4)))
    """The first one asks bootstrap and says hello. The others log in at the broker, the last with a wrong password."""
    client: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The Client-Id of the doctor's device."""
    now: Clock = lambda: datetime.now(UTC)

    def service(self, name: str) -> Credentials:
        """Return credentials of a service; there must be keys."""
        assert self.keys is not None, "asked only where there are keys"  # noqa: S101
        return self.keys.issue("service", f"fleet-doctor-{name}-{self.macs[0][-8:].replace(':', '')}")

    def device(self, number: int) -> Credentials:
        """Return credentials of one of the doctor's devices; there must be keys."""
        assert self.keys is not None, "asked only where there are keys"  # noqa: S101
        # The lowest generation that is valid under every policy.
        return self.keys.issue("device", self.macs[number], policy="first", generation=1)

    def reachable_store(self) -> Store:
        """Return the store.

        Raises:
            FleetError: There is none.
        """
        if self.store is None:
            missing = ConfigError(f"set FLEET_REDIS_URL; no `fleet up` runs with its data in {self.settings.data_dir}")
            raise self.faults.get("redis_url", missing)
        return self.store

    async def bootstrapped(self) -> BootstrapReply:
        """Return the answer of bootstrap; wait until the examination of the api has asked for it."""
        try:
            async with asyncio.timeout(_BOOTSTRAP_SECONDS):
                return await asyncio.shield(self.bootstrap)
        except TimeoutError:
            return BootstrapReply()


@asynccontextmanager
async def open_site(
    settings: Settings, now: Clock = lambda: datetime.now(UTC), *, beside: bool = True
) -> AsyncIterator[SiteUnderTest]:
    """Open each part that can be opened, and store the reason for each that cannot; change nothing.

    Args:
        settings: Of the site.
        now: This machine's clock.
        beside: Whether to look for a `fleet up` on this machine; its settings then count, not `settings`.
    """
    found = endpoints.find(settings.data_dir) if beside else None
    if found is not None and settings.redis_url not in (None, found.redis_url):
        found = None  # The settings name another site.
    source = "the settings of this command's environment"
    if found is not None:
        source = f"the settings of `fleet up`, process {found.pid}"
        if found.settings is None:
            source = f"the settings of this command's environment, with Redis and broker of process {found.pid}"
        settings = restore(found.settings) if found.settings is not None else settings
        filled = {"redis_url": settings.redis_url or found.redis_url, "mqtt_url": settings.mqtt_url or found.mqtt_url}
        settings = settings.model_copy(update=filled)
        if settings.keys is None and settings.keys_file is None:
            settings = settings.model_copy(update={"keys_file": settings.data_dir / "keys"})
    faults: dict[str, FleetError] = {}
    async with AsyncExitStack() as stack:
        yield SiteUnderTest(
            settings=settings,
            up=found is not None,
            source=source,
            pid=found.pid if found is not None else 0,
            keys=_keys(settings, faults),
            broker=_broker(settings, faults),
            store=await _store(settings, faults, stack),
            faults=faults,
            bootstrap=asyncio.get_running_loop().create_future(),
            now=now,
        )


def _keys(settings: Settings, faults: dict[str, FleetError]) -> CredentialKeys | None:
    if settings.keys is None and settings.keys_file is None:
        return None
    try:
        return read_keys(settings)
    except ConfigError as error:
        faults["keys"] = error
        return None


def _broker(settings: Settings, faults: dict[str, FleetError]) -> MqttAddress | None:
    if settings.mqtt_url is None:
        return None
    try:
        return broker_address(settings.mqtt_url, settings.tls_ca)
    except ConfigError as error:
        faults["mqtt_url"] = error
        return None


async def _store(settings: Settings, faults: dict[str, FleetError], stack: AsyncExitStack) -> Store | None:
    if settings.redis_url is None:
        return None
    try:
        store = await Store.open(settings.redis_url, settings.shards, settings.tls_ca, load=False)
    except FleetError as error:
        faults["redis_url"] = error
        return None
    stack.push_async_callback(store.close)
    return store


def _invent() -> str:
    return f"{DOCTOR}:{secrets.token_bytes(3).hex(':')}"
