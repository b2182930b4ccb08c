"""Facts about users survive the kill of the worker that asks for them, and that of Redis: real processes and audio."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.exceptions import BusyLoadingError, ConnectionError
from redis.retry import Retry

from fleet.workbench.conformance.context import CheckContext, Setup, answered, say
from fleet.workbench.conformance.steering.progress import text_of
from fleet.workbench.conformance.steering.records import Asked
from fleet.workbench.conformance.steering.script import LONGEST_WAIT, Round, Scene, named
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.process import accepts
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, role_site
from tests.support.until import until

FACT = "The user is called Anna."
SETTINGS = {"FLEET_SHARDS": "1", "FLEET_MEMORY": "on"}
DUE = "f:{0}:mdue"
"""The conversations that are to be remembered (`fleet.adapters.redis.keys`)."""
LIMIT = 240.0
pytestmark = pytest.mark.scripted


@dataclass(frozen=True, slots=True)
class Conversation(Scene):
    """A scene in which the model answers at once, and says what to remember only when it is asked once more."""

    asked: Callable[[], Sequence[Asked]] = list

    @property
    def reviews(self) -> list[Asked]:
        """The requests for what to remember."""
        return [one for one in self.asked() if text_of(one.messages[-1]).startswith("{")]

    def round(self, number: int) -> Round:
        reviews = self.reviews
        if not reviews or reviews[-1] is not self.asked()[-1]:
            return Round(named(self.mark, "Hello Anna."))
        return Round(json.dumps({"add": [FACT], "remove": []}), before=LONGEST_WAIT if len(reviews) == 1 else 0)


async def test_facts_survive_the_kill_of_a_worker_and_of_redis(tmp_path: Path) -> None:
    async with asyncio.timeout(2 * LIMIT), Steering(LOOPBACK, 0) as steering:
        with role_site(tmp_path, steering.url, durable=True) as site:
            worker = await start(site)
            context = CheckContext(Setup(site.ota, steering), find_profile("P1"))
            mark = steering.free_mark()
            scene = Conversation(mark, "I am Anna", reply_seconds=1.0, asked=lambda: steering.asked(mark))
            steering.add(scene)
            async with context.scripted_device() as device:
                await device.hello()
                device.listen()
                since = device.clock()
                await say(device, scene)
                await answered(device, since)
                device.goodbye()
                await asyncio.to_thread(until, lambda: hurry(site), LIMIT)
                await asyncio.to_thread(until, lambda: len(scene.reviews) == 1, LIMIT)
                worker.kill()
                site.redis.kill()
                site.redis.start()
                site.worker(**SETTINGS)
                await asyncio.to_thread(until, lambda: hurry(site), LIMIT)
                await asyncio.to_thread(until, lambda: facts(site, device.mac) == [FACT], LIMIT)
                await asyncio.to_thread(until, lambda: not hurry(site), LIMIT)
                site.redis.kill()
                site.redis.start()
                assert facts(site, device.mac) == [FACT]
                assert len(scene.reviews) == 2


async def start(site: RoleSite) -> RoleProcess:
    """Start an edge, an api and a worker; return the worker."""
    site.edge(**SETTINGS)
    site.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(site.http_port), **SETTINGS)
    await asyncio.to_thread(until, lambda: site.edges() == 1 and accepts(site.http_port), LIMIT)
    worker = site.worker(**SETTINGS)
    await asyncio.to_thread(site.until_spread, 1, seconds=LIMIT)
    return worker


def hurry(site: RoleSite) -> bool:
    """Let the conversation be due now; return whether there is one."""
    with redis.Redis.from_url(site.redis.url, decode_responses=True) as client:
        waiting = client.zrange(DUE, 0, -1)
        if waiting:
            client.zadd(DUE, dict.fromkeys(waiting, 1), xx=True)
        return bool(waiting)


def facts(site: RoleSite, mac: str) -> list[str]:
    # A Redis that was just started refuses commands until it has read its file.
    retry = Retry(ConstantBackoff(0.1), int(LIMIT * 10), (BusyLoadingError, ConnectionError))
    with redis.Redis.from_url(site.redis.url, decode_responses=True, retry=retry) as client:
        return list(client.lrange(f"f:{{0}}:m:{mac}", 0, -1))
