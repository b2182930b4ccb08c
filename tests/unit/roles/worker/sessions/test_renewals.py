"""Renewals of passwords by the worker that owns the shard."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.access import revocations as list_module
from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.renewals import Renewals
from fleet.adapters.redis.access.revocations import Revocations
from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.sessions.renewals import CHECK_SECONDS, RESTARTS, PasswordRenewals
from fleet.wire.identity import Username, format_username
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

DAY = 24 * 3600.0
OTHERS = [f"02:00:00:00:00:{number:02x}" for number in range(RESTARTS + 5)]


class Renewing:
    """The renewals of one shard, which run."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage, self.store = stage, stage.resources.store
        self.owned: dict[int, Shard] = {0: stage.shard}
        self.renewals = PasswordRenewals(stage.resources, lambda: self.owned)
        self.policy, self.revocations = PolicyStore(self.store), Revocations(self.store)
        self._counted = metrics.renewals.read()

    async def begin(self, grace: float = DAY, policy: Any = "first") -> None:
        await self.policy.begin(policy, time.time(), grace)

    async def connect(self, mac: str = MAC, generation: int = 0) -> None:
        """Let a device connect with a password of a generation."""
        user = format_username(Username("device", "k1", "first" if generation else "open", generation))
        await self.stage.resources.devices.appear(mac, online=True, epoch=9, user=user, owner=self.stage.shard.owner)

    async def look(self, checks: int = 12) -> None:
        """Let the worker check; a device that has just connected is left alone for twenty seconds."""
        await elapse(checks * CHECK_SECONDS + 0.1)

    def asked(self) -> list[str]:
        """Return the devices that were asked to restart."""
        return [topic for topic, payload in self.stage.session.published if b"self.reboot" in payload]

    def counted(self) -> dict[str, int]:
        return {step: count for (step,), count in (metrics.renewals.read() - self._counted).items()}


@pytest.fixture
async def renewing(stage: WorkerStage) -> AsyncIterator[Renewing]:
    one = Renewing(stage)
    async with running("renewals", one.renewals.run):
        await elapse(0.1)
        yield one


async def test_a_device_with_an_old_password_is_asked_to_restart_and_refused_only_after_its_time(
    renewing: Renewing,
) -> None:
    await renewing.connect()
    await renewing.begin()
    await renewing.look()
    assert len(renewing.asked()) == 1 and renewing.counted() == {"restart": 1}
    await renewing.look(20)
    assert len(renewing.asked()) == 1, "it is asked again much later"
    assert (await renewing.revocations.minima()).default == 0 and not (await renewing.policy.read()).closed


async def test_unproved_passwords_are_refused_when_their_time_is_over(renewing: Renewing) -> None:
    await renewing.connect()
    await renewing.begin(grace=0)
    await renewing.look()
    assert (await renewing.revocations.minima()).default == 1 and (await renewing.policy.read()).closed


async def test_unproved_passwords_are_refused_when_no_device_has_one_any_more(renewing: Renewing) -> None:
    await renewing.connect()
    await renewing.begin()
    await renewing.look()
    await renewing.connect(generation=1)
    await renewing.look()
    assert renewing.asked() != []
    assert (await renewing.revocations.minima()).default == 1 and (await renewing.policy.read()).closed


async def test_under_an_open_policy_nobody_is_asked_and_nothing_refused(renewing: Renewing) -> None:
    await renewing.connect()
    await renewing.begin(grace=0, policy="open")
    await renewing.look()
    assert renewing.asked() == [] and renewing.counted() == {}
    assert (await renewing.revocations.minima()).default == 0


async def test_a_worker_without_the_deciding_shard_decides_nothing(renewing: Renewing) -> None:
    renewing.owned = {7: renewing.stage.shard}
    await renewing.begin(grace=0)
    await renewing.look()
    assert (await renewing.revocations.minima()).default == 0


async def test_of_a_device_with_a_current_password_the_old_one_is_refused_at_once(renewing: Renewing) -> None:
    await renewing.connect(generation=1)
    await renewing.connect(OTHERS[0])
    await renewing.look()
    assert dict((await renewing.revocations.minima()).macs) == {}, "no policy asks for that yet"
    await renewing.begin()
    await renewing.look()
    assert dict((await renewing.revocations.minima()).macs) == {MAC: 1}
    assert renewing.counted().keys() == {"restart", "refused"}


async def test_a_generation_that_is_due_is_required(renewing: Renewing) -> None:
    admissions = Admissions(renewing.store)
    await admissions.decide("first", BootstrapAsker(MAC, "client"), {"kid": "k1"})
    generation = await admissions.renew(MAC)
    await renewing.look(1)
    assert await renewing.revocations.minimum(MAC) == generation > 1
    assert renewing.counted() == {"refused": 1}


async def test_a_list_that_is_full_is_counted_until_it_has_room(
    renewing: Renewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_module, "MOST_ENTRIES", 0)
    admissions = Admissions(renewing.store)
    await admissions.decide("first", BootstrapAsker(MAC, "client"), {"kid": "k1"})
    generation = await admissions.renew(MAC)
    await renewing.look(1)
    assert set(renewing.counted()) == {"list_full"}
    monkeypatch.setattr(list_module, "MOST_ENTRIES", 1)
    await renewing.look(1)
    assert await renewing.revocations.minimum(MAC) == generation


async def test_few_devices_are_asked_at_a_time(renewing: Renewing) -> None:
    for mac in OTHERS:
        await renewing.connect(mac)
    await renewing.look()
    await renewing.begin()
    sums = []
    for _ in range(8):
        await renewing.look(1)
        sums.append(len(renewing.asked()))
    assert max(after - before for before, after in zip([0, *sums], sums, strict=False)) <= RESTARTS
    assert sums[-1] == len({*OTHERS, MAC}) == len(set(renewing.asked()))


async def test_devices_that_never_connected_are_counted_by_owned_shard(renewing: Renewing) -> None:
    await Admissions(renewing.store).decide("open", BootstrapAsker(OTHERS[0], ""), {"kid": "k1"})
    await renewing.look(1)
    assert renewing.renewals.young == {0: 1}
    renewing.owned = {}
    await renewing.look(1)
    assert renewing.renewals.young == {}


async def test_after_redis_was_away_it_goes_on(renewing: Renewing) -> None:
    renewing.stage.connection.fault = RedisConnectionError("away")
    await elapse(100)
    renewing.stage.connection.fault = None
    await renewing.connect()
    await renewing.begin()
    await elapse(30)
    assert len(renewing.asked()) == 1


async def test_a_device_that_the_operator_wants_to_restart_is_asked_now_and_then_as_if_for_the_first_time(
    renewing: Renewing,
) -> None:
    await renewing.connect()
    await renewing.begin()
    await renewing.look()
    await elapse(310)
    assert len(renewing.asked()) == 2
    await Renewals(renewing.store).ask_now([MAC])
    await renewing.look(1)
    assert len(renewing.asked()) == 3
    await elapse(310)
    assert len(renewing.asked()) == 4
    await elapse(310)
    assert len(renewing.asked()) == 4, "the pauses double"
