"""When earlier passwords have to be renewed; tests/integration/redis/test_policy.py has the rest."""

import pytest

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.core.admission import Policy

MAC = "02:00:00:00:00:01"


@pytest.mark.parametrize(
    ("policies", "renewed"),
    [
        (["open", "open"], False),
        (["first", "first"], False),
        (["first", "code"], False),
        (["first", "open"], False),
        (["open", "first"], True),
        (["open", "closed"], True),
    ],
)
async def test_passwords_that_anybody_could_get_are_renewed_when_the_policy_stops_to_be_open(
    store: Store, policies: list[Policy], renewed: bool
) -> None:
    admissions, before, after = Admissions(store), *policies
    await PolicyStore(store).begin(before, 1000.0, 60.0)
    await admissions.decide("first", BootstrapAsker(MAC, "client"), {"kid": "k1"})
    await admissions.renew(MAC)
    generation = (await admissions.read(MAC)).generation
    await Revocations(store).require(MAC, generation)
    await PolicyStore(store).begin(after, 2000.0, 60.0)
    known = await admissions.read(MAC)
    assert known.generation == generation + renewed
    if renewed:
        assert known.due == 2060, "the earlier one is good until then"


async def test_the_operator_reads_what_the_switch_to_an_open_policy_means(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await PolicyStore(store).begin("first", 1000.0, 60.0)
    await PolicyStore(store).begin("open", 2000.0, 60.0)
    [warning] = caplog.records
    assert "fleet devices renew" in vars(warning)["advice"] and vars(warning)["refused_before"] is False
