import pytest

from fleet.roles.worker.sessions.apologies import Apologies
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage


@pytest.fixture
async def apologies(stage: WorkerStage) -> Apologies:
    """Apologies of a device whose session has just ended."""
    await stage.open("s1")
    await stage.resources.sessions.close(
        stage.shard.owner, MAC, "s1", "edge lost", goodbye_sent=True, apology="interrupted"
    )
    return Apologies(stage.resources.store, stage.resources.settings)


def kinds(stage: WorkerStage) -> list[str]:
    return [str(message["type"]) for message in stage.sent()]


async def test_it_is_shown_once_after_the_device_has_cleared_its_screen(
    stage: WorkerStage, apologies: Apologies
) -> None:
    await apologies.show(stage.shard, MAC)
    assert kinds(stage) == []
    for _ in range(2):
        apologies.show_later(stage.shard, MAC)
        await elapse(1)
        assert kinds(stage) == ["alert"]


async def test_a_new_connection_is_shown_it_again_and_a_new_session_is_not(
    stage: WorkerStage, apologies: Apologies
) -> None:
    await elapse(1)
    await apologies.show(stage.shard, MAC)
    await stage.connect(epoch=2)
    await elapse(2)  # it gets the goodbye again first
    await apologies.show(stage.shard, MAC)
    assert kinds(stage) == ["alert", "alert"]
    await stage.open("s2")
    await stage.connect(epoch=3)
    await apologies.show(stage.shard, MAC)
    assert kinds(stage) == ["alert", "alert"]


async def test_a_goodbye_is_known_for_a_while(stage: WorkerStage, apologies: Apologies) -> None:
    assert await apologies.goodbye_just_sent(MAC, "s1")
    assert not await apologies.goodbye_just_sent(MAC, "another")
    await elapse(31)
    assert not await apologies.goodbye_just_sent(MAC, "s1")


async def test_it_is_in_the_language_of_the_device_where_that_is_known(
    stage: WorkerStage, apologies: Apologies
) -> None:
    words = {apologies.alert("interrupted", language).message for language in ("de", "zh", "")}
    assert len(words) >= 2
