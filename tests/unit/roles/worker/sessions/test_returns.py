import pytest

from fleet.ground.errors import Unavailable
from fleet.roles.worker.sessions import returns
from fleet.roles.worker.sessions.apologies import Apologies
from fleet.roles.worker.sessions.returns import GRACE_SECONDS, ReturnedDevices
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

OTHERS = [f"02:00:00:00:00:{number:02x}" for number in range(3)]


@pytest.fixture
async def returned(stage: WorkerStage) -> ReturnedDevices:
    """The returned devices of a worker; the last session of one of them ended with an apology."""
    await stage.open("s1")
    await stage.resources.sessions.close(
        stage.shard.owner, MAC, "s1", "edge lost", goodbye_sent=True, apology="interrupted"
    )
    return ReturnedDevices(Apologies(stage.resources.store, stage.resources.settings))


def kinds(stage: WorkerStage) -> list[str]:
    return [str(message["type"]) for message in stage.sent()]


async def test_a_device_that_says_nothing_gets_its_goodbye_and_no_apology(
    stage: WorkerStage, returned: ReturnedDevices
) -> None:
    returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=False)
    await elapse(GRACE_SECONDS * 0.9)
    assert stage.sent() == []
    await elapse(5)
    [goodbye] = stage.sent()
    assert (goodbye["type"], goodbye["session_id"]) == ("goodbye", "s1")


async def test_an_apology_that_is_still_to_be_shown_follows_the_goodbye(
    stage: WorkerStage, returned: ReturnedDevices
) -> None:
    returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=True)
    await elapse(5)
    assert kinds(stage) == ["goodbye", "alert"]


async def test_a_device_that_opens_a_session_first_gets_none(stage: WorkerStage, returned: ReturnedDevices) -> None:
    returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=False)
    await elapse(GRACE_SECONDS * 0.9)
    returned.cancel(MAC)
    returned.cancel(MAC)
    await elapse(5)
    assert stage.sent() == []


async def test_one_that_returns_twice_gets_one_a_while_after_the_second_time(
    stage: WorkerStage, returned: ReturnedDevices
) -> None:
    for _ in range(2):
        returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=False)
        await elapse(GRACE_SECONDS * 0.6)
    assert stage.sent() == []
    await elapse(5)
    assert kinds(stage) == ["goodbye"]


async def test_when_too_many_wait_the_next_one_does_not(
    stage: WorkerStage, returned: ReturnedDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returns, "MOST_WAITING", len(OTHERS))
    for mac in OTHERS:
        returned.schedule(stage.shard, mac, "s1", "xiaozhi", apology=False)
    assert stage.session.published == []
    returned.schedule(stage.shard, OTHERS[0], "s2", "xiaozhi", apology=False)
    assert stage.session.published == [], "it waited already"
    returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=False)
    assert kinds(stage) == ["goodbye"]
    await elapse(5)
    assert len(stage.session.published) == 1 + len(OTHERS)
    returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=False)
    assert kinds(stage) == ["goodbye"], "there is room again"


async def test_a_goodbye_that_cannot_be_sent_is_left_out(stage: WorkerStage, returned: ReturnedDevices) -> None:
    stage.session.fault = Unavailable("away")
    returned.schedule(stage.shard, MAC, "s1", "xiaozhi", apology=True)
    await elapse(5)
    stage.session.fault = None
    await elapse(5)
    assert stage.sent() == []
