import asyncio
import inspect
import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from redis.exceptions import ResponseError

from fleet.adapters.net.mqtt.session import MqttSession
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import running
from fleet.roles.worker.ownership import shard as module
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.shard import BOOT_TOPIC, Shard, shard_session
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import Credentials
from fleet.wire.messages import GoodbyeCommand
from fleet.wire.topics import presence_topic, slot, up_topic
from tests.support.shard_session import SilentSession
from tests.support.virtual_time import elapse

MAC = "aa:bb:cc:dd:ee:ff"


def endless() -> Lease:
    return Lease(Owner("w", "1"), 0.0, math.inf)


class SlowSession:
    """A session that is given what the broker kept before it may publish."""

    def __init__(self, shard: Shard) -> None:
        self.shard, self.may_publish = shard, asyncio.Event()
        self.published: list[bytes] = []
        self.handling: list[asyncio.Task[type[Exception] | None]] = []

    @property
    def connected(self) -> bool:
        return self.may_publish.is_set()

    def publish(self, topic: str, payload: bytes) -> None:
        if not self.connected:
            raise Unavailable("not connected")
        self.published.append(payload)

    async def run(self, on_ready: Callable[[], None], on_greeted: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            for payload in (b"1", b"2"):
                self.handling.append(group.create_task(self._take(payload)))
            await self.may_publish.wait()
            on_greeted()
            on_ready()
            await asyncio.Event().wait()

    async def _take(self, payload: bytes) -> type[Exception] | None:
        """Return how a message failed, after which the broker would keep it."""
        failure = await self.shard.receive(presence_topic(MAC), payload)
        return type(failure) if failure else None


def slow(shard: Shard) -> MqttSession:
    return cast("MqttSession", cast("Any", SlowSession(shard)))


async def always(shard: Shard) -> bool:
    return True


async def test_what_the_broker_kept_is_handled_in_order_once_it_can_be_answered() -> None:
    handled: list[bytes] = []

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        shard.publish(mac, GoodbyeCommand(payload.decode()), XIAOZHI)
        handled.append(payload)

    sessions: list[SlowSession] = []

    def connect(shard: Shard) -> MqttSession:
        sessions.append(SlowSession(shard))
        return cast("MqttSession", cast("Any", sessions[-1]))

    shard = Shard(
        0,
        endless(),
        connect,
        SimpleNamespace(receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload),
        always,
    )
    async with asyncio.timeout(10), running("shard", shard.run):
        while not sessions or not sessions[0].handling:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert handled == []
        sessions[0].may_publish.set()
        await asyncio.wait(sessions[0].handling)
        assert handled == [b"1", b"2"]
        assert len(sessions[0].published) == 2


async def test_without_a_connection_nothing_is_sent() -> None:
    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        return

    shard = Shard(
        0,
        endless(),
        slow,
        SimpleNamespace(receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload),
        always,
    )
    with pytest.raises(Unavailable):
        shard.publish(MAC, GoodbyeCommand("s"), XIAOZHI)


def opened(receive: Callable[..., Any], sessions: list[SlowSession]) -> Shard:
    """Return a shard whose first session may publish."""

    def connect(shard: Shard) -> MqttSession:
        sessions.append(SlowSession(shard))
        sessions[-1].may_publish.set()
        return cast("MqttSession", cast("Any", sessions[-1]))

    return Shard(
        0,
        endless(),
        connect,
        SimpleNamespace(receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload),
        always,
    )


async def outcomes(sessions: list[SlowSession]) -> list[type[Exception] | None]:
    """Return how the first session's messages ended, once they have."""
    while not sessions or not sessions[0].handling:
        await asyncio.sleep(0)
    handling = sessions[0].handling
    await asyncio.wait(handling)
    return [one.result() for one in handling]


async def test_who_may_have_lost_the_lease_neither_handles_nor_says_anything() -> None:
    handled: list[bytes] = []

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        handled.append(payload)

    sessions: list[SlowSession] = []
    shard = opened(receive, sessions)
    shard.lease.end()
    async with asyncio.timeout(10), running("shard", shard.run):
        assert await outcomes(sessions) == [Unavailable, Unavailable]
        with pytest.raises(Fenced):
            shard.publish(MAC, GoodbyeCommand("s"), XIAOZHI)
        with pytest.raises(Fenced):
            shard.check()
    assert handled == sessions[0].published == []


async def test_what_cannot_be_handled_in_time_is_left_for_the_next_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    attempts: list[bytes] = []

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        attempts.append(payload)
        raise Unavailable("Redis is away")

    sessions: list[SlowSession] = []
    shard = opened(receive, sessions)
    async with asyncio.timeout(10), running("shard", shard.run):
        assert await outcomes(sessions) == [Unavailable, Unavailable]
        # The second one is not handled after the first one was not.
        assert set(attempts) == {b"1"}


class RefusedSession(SlowSession):
    """A session that the broker refuses."""

    async def run(self, on_ready: Callable[[], None], on_greeted: Callable[[], None]) -> None:
        raise Unavailable("refused")


async def test_a_refused_shard_is_connected_again_every_two_seconds_as_long_as_it_has_its_lease() -> None:
    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        return

    async def confirm(shard: Shard) -> bool:
        return not given_away

    times: list[float] = []

    def connect(shard: Shard) -> MqttSession:
        times.append(asyncio.get_running_loop().time())
        return cast("MqttSession", cast("Any", RefusedSession(shard)))

    given_away = False
    shard = Shard(0, endless(), connect, SimpleNamespace(receive=receive), confirm)
    task = asyncio.create_task(shard.run())
    await elapse(30)
    assert not task.done()
    assert all(1 <= later - earlier <= 2.01 for earlier, later in itertools.pairwise(times[6:]))
    given_away = True
    await elapse(2)
    assert task.done()


async def test_what_redis_refuses_for_good_is_given_up() -> None:
    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        raise Unavailable("Redis refused") from ResponseError("WRONGTYPE")

    sessions: list[SlowSession] = []
    shard = opened(receive, sessions)
    async with asyncio.timeout(10), running("shard", shard.run):
        assert await outcomes(sessions) == [None, None]


async def test_work_for_a_shard_that_is_given_up_is_not_begun() -> None:
    async def work() -> None:
        return

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        return

    sessions: list[SlowSession] = []
    shard = opened(receive, sessions)
    async with asyncio.timeout(10), running("shard", shard.run):
        await outcomes(sessions)
        begun = work()
        shard.spawn("work", begun).cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert inspect.getcoroutinestate(begun) == inspect.CORO_CLOSED
    late = work()
    with pytest.raises(Unavailable):
        shard.spawn("work", late)
    assert inspect.getcoroutinestate(late) == inspect.CORO_CLOSED


async def test_a_shard_that_is_given_away_first_shows_what_it_was_about_to() -> None:
    shown = asyncio.Event()

    async def show() -> None:
        await asyncio.sleep(0)
        shown.set()

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        raise AssertionError

    shard = Shard(
        1,
        endless(),
        slow,
        SimpleNamespace(receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload),
        always,
    )
    async with asyncio.timeout(5), running("shard", shard.run):
        await asyncio.sleep(0)
        shard.spawn(f"alert {MAC}", show())
        turn = shard.spawn(f"turn {MAC}", cast("Any", elapse(3600)))
        shard._session = None
        await shard.drain(5)
        assert shown.is_set()
        assert (shard.turns, turn.done()) == (1, False)


async def test_what_a_session_brings_for_other_shards_is_left_to_them() -> None:
    received: list[str] = []

    async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        received.append(f"{shard.number} {kind}")

    number = slot(MAC) // 16
    address = MqttAddress("192.0.2.1", 1883, tls=False)
    for one in (number, (number + 1) % 16):
        shard = Shard(
            one,
            endless(),
            slow,
            SimpleNamespace(
                receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload
            ),
            always,
        )
        session = shard_session(shard, address, Credentials("fleet-shard-1", "service.k", "p"), 16)
        assert session._reading is not None
        async with asyncio.timeout(5), running("shard", shard.run):
            await asyncio.sleep(0)
            shard._ready.set()
            for topic in (up_topic(MAC), presence_topic(MAC), BOOT_TOPIC):
                await session._reading.on_message(topic, b"")
    assert set(received) == {f"{number} up", f"{number} presence", f"{number} boot", f"{(number + 1) % 16} boot"}


class Quick:
    """A receiver that can handle messages of devices without the executor."""

    def __init__(self) -> None:
        self.taken: dict[bytes, asyncio.Future[bool]] = {}
        self.received: list[bytes] = []
        self.going_on = asyncio.Event()

    def take(self, mac: str, payload: bytes) -> asyncio.Future[bool] | None:
        if not payload.startswith(b"quick"):
            return None
        return self.taken.setdefault(payload, asyncio.get_running_loop().create_future())

    async def receive(self, shard: Shard, kind: str, mac: str, payload: bytes) -> None:
        self.received.append(payload)
        await self.going_on.wait()


async def test_what_needs_no_order_is_handled_side_by_side_and_after_a_failure_in_the_usual_way() -> None:
    quick = Quick()
    shard = Shard(0, endless(), lambda _: SilentSession(), quick, always)
    async with asyncio.timeout(10), running("shard", shard.run):
        while not shard.connected:
            await asyncio.sleep(0)
        quick.going_on.set()
        first, second = (shard.receive(up_topic(MAC), payload) for payload in (b"quick 1", b"quick 2"))
        assert list(quick.taken) == [b"quick 1", b"quick 2"] and quick.received == []
        quick.taken[b"quick 1"].set_result(True)
        assert await first is None and not second.done()
        quick.taken[b"quick 2"].set_exception(Unavailable("away"))
        assert await second is None
        assert quick.received == [b"quick 2"]


async def test_nothing_overtakes_the_earlier_work_of_its_device() -> None:
    quick = Quick()
    shard = Shard(0, endless(), lambda _: SilentSession(), quick, always)
    async with asyncio.timeout(10), running("shard", shard.run):
        while not shard.connected:
            await asyncio.sleep(0)
        shard._ready.clear()
        early = shard.receive(up_topic(MAC), b"quick, before the session may publish")
        assert quick.taken == {} and quick.received == []
        shard._ready.set()
        while not quick.received:
            await asyncio.sleep(0)
        later = shard.receive(up_topic(MAC), b"quick 1")
        quick.going_on.set()
        assert (await early, await later) == (None, None)
        assert quick.taken == {} and quick.received[1:] == [b"quick 1"]
        shard._session = None
        assert isinstance(await shard.receive(up_topic(MAC), b"quick 3"), Unavailable)
        assert quick.taken == {}, "the broker delivers it to the next session"


async def test_what_fails_when_the_shard_is_given_up_is_left_to_its_next_owner() -> None:
    quick = Quick()
    shard = Shard(0, endless(), lambda _: SilentSession(), quick, always)
    async with running("shard", shard.run):
        while not shard.connected:
            await asyncio.sleep(0)
        ended, gone = (shard.receive(up_topic(MAC), payload) for payload in (b"quick 1", b"quick 2"))
        gone.cancel()
    for begun in quick.taken.values():
        begun.cancel()
    assert isinstance(await ended, Unavailable)
