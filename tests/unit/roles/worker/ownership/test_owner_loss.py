"""What a worker hears and says of shards without an owner; the MQTT session is another's test."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from fleet.adapters.net.mqtt.session import Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Overloaded, Unavailable
from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import running
from fleet.roles.worker.ownership import owner_loss
from fleet.roles.worker.ownership.owner_loss import OwnerLossListener
from fleet.wire.identity import Credentials
from tests.support.virtual_time import elapse


class Session:
    """A clean session; a test says when it is connected and lost."""

    made: list["Session"]

    def __init__(self, address: MqttAddress, credentials: Credentials, *, reading: Reading) -> None:
        self.address, self.credentials, self.reading = address, credentials, reading
        self.published: list[tuple[str, bytes]] = []
        self.fault: Exception | None = None
        self.connected = False
        self._lost = asyncio.Event()
        self.made.append(self)

    async def run(self, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready
        await self._lost.wait()
        self.connected = False
        raise Unavailable("lost")

    def connect(self) -> None:
        self.connected = True
        self._on_ready()

    def lose(self) -> None:
        self._lost.set()

    def publish(self, topic: str, payload: bytes) -> None:
        if self.fault is not None:
            raise self.fault
        self.published.append((topic, payload))


class Stage:
    """A listener, and what it reported."""

    def __init__(self) -> None:
        self.losses: list[tuple[int, str, bool]] = []
        self.names = iter(range(100))
        self.address = MqttAddress("127.0.0.1", 1)
        self.listener = OwnerLossListener(self.address, self._credentials, self._on_lost)

    def _credentials(self) -> Credentials:
        return Credentials(f"fleet-{next(self.names)}", "", "")

    async def _on_lost(self, shard: int, fence: str, released: bool) -> None:
        self.losses.append((shard, fence, released))


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Stage:
    Session.made = []
    monkeypatch.setattr(owner_loss, "MqttSession", Session)
    return Stage()


@pytest.fixture
async def stage(idle: Stage) -> AsyncIterator[Stage]:
    async with running("owner losses", idle.listener.run):
        await elapse(0)
        yield idle


def malformed() -> int:
    return metrics.malformed.read()[("loss",)]


async def test_a_will_and_a_release_name_the_shard_and_the_fence_of_its_last_owner(stage: Stage) -> None:
    [session] = Session.made
    assert session.reading.filters == ["fleet/shard/+/lost"] and session.address is stage.address
    await session.reading.on_message("fleet/shard/7/lost", b"12")
    await session.reading.on_message("fleet/shard/127/lost", b"18446744073709551615 released")
    assert stage.losses == [(7, "12", False), (127, "18446744073709551615", True)]


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        ("fleet/shard/7/lost", b""),
        ("fleet/shard/7/lost", b"12 gone"),
        ("fleet/shard/7/lost", b"1" * 21),
        ("fleet/shard/1000/lost", b"12"),
        ("fleet/shard/x/lost", b"12"),
        ("fleet/shard/7/lost/more", b"12"),
    ],
)
async def test_what_is_no_loss_is_counted_and_ends_nothing(stage: Stage, topic: str, payload: bytes) -> None:
    before = malformed()
    await Session.made[0].reading.on_message(topic, payload)
    assert stage.losses == [] and malformed() == before + 1


async def test_a_release_is_announced_as_one(stage: Stage) -> None:
    [session] = Session.made
    stage.listener.announce(7, "12")
    [(topic, payload)] = session.published
    await session.reading.on_message(topic, payload)
    assert stage.losses == [(7, "12", True)]


@pytest.mark.parametrize("fault", [Unavailable("away"), Overloaded("full")])
async def test_a_release_that_cannot_be_announced_is_no_failure(stage: Stage, fault: Exception) -> None:
    Session.made[0].fault = fault
    stage.listener.announce(7, "12")


async def test_before_its_first_session_it_announces_nothing_and_is_not_connected(idle: Stage) -> None:
    idle.listener.announce(7, "12")
    assert not idle.listener.connected and not idle.listener.reached.is_set()


async def test_it_connects_again_with_new_credentials(stage: Stage) -> None:
    first = Session.made[0]
    assert not stage.listener.connected and not stage.listener.reached.is_set()
    first.connect()
    assert stage.listener.connected and stage.listener.reached.is_set()
    first.lose()
    await elapse(0)
    assert not stage.listener.connected
    await elapse(3)
    assert [session.credentials.client_id for session in Session.made] == ["fleet-0", "fleet-1"]
    assert stage.listener.reached.is_set(), "it was there once"


async def test_who_was_connected_is_back_soon_and_who_never_was_tries_less_often(stage: Stage) -> None:
    for number in range(6):
        assert len(Session.made) == number + 1
        Session.made[-1].lose()
        await elapse(3)
    Session.made[-1].connect()
    Session.made[-1].lose()
    await elapse(0.3)
    assert len(Session.made) == 8
    Session.made[-1].lose()
    await elapse(0.3)
    Session.made[-1].lose()
    await elapse(0.3)
    assert len(Session.made) == 9, "the pauses grow"
