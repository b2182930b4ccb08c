"""Many devices, counted by what decides how they can be reached."""

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.device_tallies import AT_ONCE, DeviceKind, DeviceTallies
from tests.support.memory_store import connection_of

UNKNOWN = DeviceKind(False, "", "", "", "", session=False, speaks=False, timezone="")


def macs(count: int) -> list[str]:
    return [f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(count)]


async def test_devices_are_counted_by_what_is_known_of_them(store: Store) -> None:
    here, there, talking, waiting = some = macs(4)
    redis, keys = connection_of(store).redis, store.keys
    for mac in (here, there, talking):
        redis.run("HSET", keys.device(mac), "on", "1", "dialect", "xiaozhi", "fw", '2.5.0 "x"')
        redis.run("HSET", keys.device(mac), "host", "10.0.0.2", "nofetch", "1 2.5.0")
    redis.run("HSET", keys.session(talking), "id", "s", "edge", "e")
    redis.run("HSET", keys.session(waiting), "id", "s")
    redis.run("HSET", f"{names.prefix(keys.shard(there))}o:{there}", "tz", "Asia/Shanghai")
    tallies = DeviceTallies(store)
    known = DeviceKind(True, "xiaozhi", '2.5.0 "x"', "1 2.5.0", "10.0.0.2", session=False, speaks=False, timezone="")
    talks = known._replace(session=True, speaks=True)
    assert await tallies.count(some) == {known: 2, talks: 1, UNKNOWN._replace(session=True): 1}
    zoned = known._replace(timezone="Asia/Shanghai")
    assert await tallies.count([here, there], timezones=True) == {known: 1, zoned: 1}
    assert await tallies.count([]) == {}


async def test_more_devices_than_one_call_has_are_all_counted(store: Store) -> None:
    count = 3 * AT_ONCE
    assert await DeviceTallies(store).count(macs(count)) == {UNKNOWN: count}
