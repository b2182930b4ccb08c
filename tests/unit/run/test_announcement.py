"""A process tells that it is there, and whether it reaches its broker, until it ends."""

from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.shards.processes import ANNOUNCE_SECONDS, Processes
from fleet.run.announcement import announced
from tests.support.memory_store import memory_store
from tests.support.virtual_time import elapse


async def test_a_process_is_announced_while_it_runs() -> None:
    store, readiness, connected = await memory_store(shards=1), Readiness(), [False]
    with readiness.requiring("broker", lambda: connected[0]):
        async with announced(store, "edge", readiness, MqttAddress("broker.example", 1883)):
            await elapse(0.1)
            (found,) = await Processes(store).live()
            assert (found.role, found.broker, found.connected) == ("edge", "broker.example:1883", False)
            assert found.faults == "starting, broker" and found.version
            connected[0] = True
            with readiness.serving():
                await elapse(ANNOUNCE_SECONDS + 0.1)
                (found,) = await Processes(store).live()
                assert (found.connected, found.faults) == (True, "")
    assert await Processes(store).live() == []
