"""What jobs look up of devices before they call them; whole jobs are tested in integration/sql/test_jobs."""

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.job_calls import DeviceNow, JobCalls


async def test_a_device_is_looked_up_with_the_zone_that_it_was_given(store: Store, mac: str) -> None:
    other = "02:00:00:00:00:99"
    await Admissions(store).set_timezone(mac, "Asia/Shanghai")
    await store.client.hset(store.keys.device(other), "on", "1")
    await store.client.hset(store.keys.session(other), "id", "s1")
    found = await JobCalls(store, 1).look([mac, other])
    assert found == {mac: DeviceNow(False, False, "Asia/Shanghai"), other: DeviceNow(True, True, "")}
