"""Several admissions at once; tests/integration/redis/test_admissions.py has the rest, over real servers too."""

from fleet.adapters.redis.access.admissions import Admission, Admissions
from fleet.adapters.redis.client.store import Store

ONE, OTHER, UNKNOWN = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"


async def test_many_admissions_are_read_in_their_order(store: Store) -> None:
    admissions = Admissions(store)
    await admissions.bind(ONE, "client 1", "serial 1")
    await admissions.bind(OTHER)
    one, unknown, other = await admissions.read_many([ONE, UNKNOWN, OTHER])
    assert (one.bound, one.client, one.serial, one.how) == (True, "client 1", "serial 1", "code")
    assert (other.bound, other.client, other.how) == (True, "", "mac")
    assert unknown == Admission()
    assert await admissions.read_many([]) == []


async def test_all_admissions_are_found(store: Store) -> None:
    admissions = Admissions(store)
    assert await admissions.all() == {}
    for mac in (ONE, OTHER):
        await admissions.bind(mac, f"client of {mac}")
    await admissions.set_timezone(OTHER, "Europe/Berlin")
    found = await admissions.all()
    assert {mac: (one.client, one.timezone) for mac, one in found.items()} == {
        ONE: (f"client of {ONE}", ""),
        OTHER: (f"client of {OTHER}", "Europe/Berlin"),
    }


async def test_who_was_unbound_stays_on_record(store: Store) -> None:
    admissions = Admissions(store)
    await admissions.bind(ONE, "client 1")
    assert (await admissions.unbind(ONE))[0] and not (await admissions.unbind(ONE))[0]
    [record] = await admissions.read_many([ONE])
    assert (record.bound, record.unbound, record.how) == (False, True, "")
