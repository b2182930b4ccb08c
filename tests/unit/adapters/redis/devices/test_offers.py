"""Offers of firmware in the records of devices; what bootstrap makes of them: integration/api/test_firmware."""

import msgspec
import pytest

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.offers import DeviceOffer, Offers
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.ground.errors import Fenced
from fleet.wire.firmware_offer import FirmwareOffer
from tests.support.memory_store import connection_of, memory_store
from tests.support.virtual_time import elapse

MACS = [f"02:00:00:00:00:{number:02x}" for number in range(1, 30)]
UNKNOWN = "02:00:00:00:ff:01"
OFFER = FirmwareOffer(id="7-1", file="ab" * 32, secret="5e" * 16, version="2.5.0")
IDS = dict.fromkeys(MACS, "7-1")


@pytest.fixture
async def store() -> Store:
    """A store with devices in several shards."""
    opened = await memory_store()
    for mac in MACS:
        await Devices(opened).appear(mac, online=True, epoch=5)
    return opened


def all_of(macs: list[str]) -> list[DeviceOffer]:
    return [DeviceOffer(mac, OFFER, 2**45, "b1") for mac in macs]


async def test_only_devices_that_redis_knows_get_an_offer(store: Store) -> None:
    offers = Offers(store)
    assert await offers.put(1, all_of([*MACS, UNKNOWN])) == {UNKNOWN}
    assert [await offers.take(mac, OFFER.id, OFFER.secret) for mac in MACS] == [OFFER] * len(MACS)
    assert await offers.take(UNKNOWN, OFFER.id, OFFER.secret) is None


async def test_an_offer_is_taken_by_its_name_and_secret_only(store: Store) -> None:
    offers = Offers(store)
    await offers.put(1, all_of(MACS[:1]))
    assert await offers.take(MACS[0], OFFER.id, "00" * 16) is None
    assert await offers.take(MACS[0], "7-2", OFFER.secret) is None
    assert await offers.take(MACS[1], OFFER.id, OFFER.secret) is None


async def test_withdrawn_offers_are_those_of_the_id_in_all_shards(store: Store) -> None:
    offers = Offers(store)
    await offers.put(1, all_of(MACS[:20]))
    assert await offers.withdraw({**IDS, MACS[0]: "8-1"}) == set(MACS[1:20])
    assert await offers.take(MACS[1], OFFER.id, OFFER.secret) is None
    assert await offers.take(MACS[0], OFFER.id, OFFER.secret) == OFFER


async def test_what_a_device_has_begun_to_download_stays_unless_all_is_withdrawn(store: Store) -> None:
    offers = Offers(store)
    await offers.put(1, all_of(MACS[:3]))
    assert await offers.take(MACS[0], OFFER.id, OFFER.secret) == OFFER
    assert await offers.withdraw(IDS, untaken=True) == set(MACS[1:3])
    assert await offers.withdraw(IDS) == {MACS[0]}


async def test_an_offer_under_an_earlier_lease_of_control_is_refused(store: Store) -> None:
    offers = Offers(store)
    await JobCalls(store, 7).begin()
    with pytest.raises(Fenced):
        await offers.put(6, all_of(MACS))
    assert await offers.put(7, all_of(MACS)) == set()


async def test_an_offer_is_not_begun_again_under_its_id_but_replaced_by_another(store: Store) -> None:
    offers = Offers(store)
    await offers.put(1, all_of(MACS[:1]))
    await offers.take(MACS[0], OFFER.id, OFFER.secret)
    await offers.put(1, all_of(MACS[:1]))
    assert await offers.withdraw(IDS, untaken=True) == set(), "it is still the one that was begun"
    newer = msgspec.structs.replace(OFFER, id="7-2")
    await offers.put(1, [DeviceOffer(MACS[0], newer, 2**45, "b1")])
    assert await offers.withdraw({MACS[0]: "7-2"}, untaken=True) == {MACS[0]}


async def boot(store: Store, board: str = "b1", firmware: str = "2.4.0") -> FirmwareOffer | None:
    told = {"board": board, "fw": firmware}
    return (await Admissions(store).decide("first", BootstrapAsker(MACS[0], "client"), told)).offer


async def test_bootstrap_gives_an_offer_until_its_time(store: Store) -> None:
    until = round((connection_of(store).redis.now() + 60) * 1000)
    await Offers(store).put(1, [DeviceOffer(MACS[0], OFFER, until, "b1")])
    await elapse(59)
    assert await boot(store) == OFFER
    await elapse(2)
    assert await boot(store) is None


async def test_bootstrap_gives_an_offer_three_times_to_its_board_and_never_what_runs_already(store: Store) -> None:
    await Offers(store).put(1, all_of(MACS[:1]))
    assert [await boot(store, "b2"), await boot(store, firmware="2.5.0")] == [None, None]
    assert [await boot(store) for _ in range(4)] == [OFFER] * 3 + [None]


async def test_bootstrap_gives_nothing_that_was_begun_before(store: Store) -> None:
    await Offers(store).put(1, all_of(MACS[:1]))
    assert await Offers(store).take(MACS[0], OFFER.id, OFFER.secret) == OFFER
    assert await boot(store) is None
