"""Which policy is served under, and until when passwords count that prove nothing."""

import pytest

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.core.admission import Policy

OTHER = "02:00:00:00:00:09"


async def test_the_time_of_unproved_passwords_begins_once(store: Store) -> None:
    policy = PolicyStore(store)
    assert not (await policy.read()).strict
    await policy.begin("first", 1000.0, 60.0)
    await policy.begin("code", 2000.0, 60.0)
    state = await policy.read()
    assert (state.policy, state.since, state.until, state.closed) == ("code", 1000, 1060, False)
    await policy.close()
    await policy.begin("closed", 3000.0, 60.0)
    assert (await policy.read()).closed


async def test_the_switch_to_an_open_policy_is_told_loudly_and_once(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    policy = PolicyStore(store)
    earlier: list[Policy] = ["open", "first"]
    for name in earlier:
        await policy.begin(name, 1000.0, 60.0)
    await Revocations(store).require_all(1)
    await policy.close()
    assert not caplog.messages
    for _ in range(2):
        await policy.begin("open", 2000.0, 60.0)
    [told] = caplog.records
    assert told.levelname == "WARNING" and told.message == "passwords that prove nothing count again"
    assert (vars(told)["was"], vars(told)["refused_before"]) == ("first", True)


async def test_under_an_open_policy_unproved_passwords_count_again_and_cut_ones_do_not(store: Store, mac: str) -> None:
    policy, revocations, admissions = PolicyStore(store), Revocations(store), Admissions(store)
    await policy.begin("first", 1000.0, 60.0)
    given = await admissions.decide("first", BootstrapAsker(mac, "owner"), {"kid": "k1"})
    raised = await admissions.renew(mac)
    assert raised > given.generation
    await revocations.require(mac, raised)
    await store.client.hset(f"f:{{{store.keys.shard(mac)}}}:o:{mac}", "req", str(raised))
    await revocations.require(OTHER, 1)
    await policy.begin("open", 2000.0, 60.0)
    minima = await revocations.minima()
    assert (minima.default, dict(minima.macs)) == (0, {mac: raised})
    assert not (await policy.read()).strict
    # It is served like everybody, with a password that counts; the return to a stricter policy raises it again.
    anybody = await admissions.decide("open", BootstrapAsker(mac, "anybody"), {"kid": "k1"})
    assert (anybody.verdict, anybody.generation) == ("admitted", raised)
    assert (await admissions.decide("open", BootstrapAsker(OTHER, "anybody"), {"kid": "k1"})).generation == 0
    await policy.begin("first", 3000.0, 60.0)
    owner = await admissions.decide("first", BootstrapAsker(mac, "owner"), {"kid": "k1"})
    assert owner.generation > raised
    assert (await admissions.decide("first", BootstrapAsker(mac, "anybody"), {"kid": "k1"})).verdict == "asked"
    assert (await policy.read()).since == 3000
