"""Inbox."""

import asyncio
from collections.abc import Sequence

import pytest

from fleet.adapters.net.mqtt import inbox as module
from fleet.adapters.net.mqtt.inbox import Inbox
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import Ended
from fleet.wire.mqtt.packets import Publish
from tests.support.virtual_time import elapse


class Desk:
    """An inbox whose handlers end when the test says so."""

    def __init__(self, bound: int = 100) -> None:
        self.begun: list[str] = []
        self.acknowledged: list[int] = []
        self.full: list[bool] = []
        self.gates: dict[str, asyncio.Future[None]] = {}
        self.refused: list[str] = []
        self.inbox = Inbox(self._handle, self._acknowledge, self.full.append, self.refused.append, bound)

    async def _handle(self, topic: str, payload: bytes) -> None:
        self.begun.append(topic)
        self.gates[topic] = asyncio.get_running_loop().create_future()
        await self.gates[topic]

    def _acknowledge(self, ids: Sequence[int]) -> None:
        self.acknowledged += ids

    def put(self, group: asyncio.TaskGroup, *numbers: int) -> None:
        for number in numbers:
            self.inbox.put(group, Publish(str(number), b"", number))


async def turns() -> None:
    """Let everything run that can run, and acknowledgements be sent."""
    for _ in range(10):
        await asyncio.sleep(0)
    await elapse(module.ACKNOWLEDGE_SECONDS)


async def test_acknowledgements_wait_for_those_before_them() -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        desk.put(group, 1, 2, 3)
        await turns()
        desk.gates["3"].set_result(None)
        desk.gates["2"].set_result(None)
        await turns()
        assert desk.acknowledged == []
        desk.gates["1"].set_result(None)
        await turns()
        assert desk.acknowledged == [1, 2, 3]


async def test_all_inboxes_of_a_process_acknowledge_at_the_same_moment() -> None:
    clock, sent = asyncio.get_running_loop().time, set[float]()

    async def handle(topic: str, payload: bytes) -> None:
        """Done at once."""

    def acknowledge(ids: Sequence[int]) -> None:
        sent.add(clock())

    inboxes = [Inbox(handle, acknowledge, lambda _: None, lambda _: None, 10) for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        await elapse(1.25 * module.ACKNOWLEDGE_SECONDS - clock() % module.ACKNOWLEDGE_SECONDS)
        begun = clock()
        for inbox in inboxes:
            inbox.put(group, Publish("t", b"", 1))
            await elapse(module.ACKNOWLEDGE_SECONDS / 8)
        await elapse(module.ACKNOWLEDGE_SECONDS)
    assert len(sent) == 1 and sent.pop() - begun <= module.ACKNOWLEDGE_SECONDS


async def test_acknowledgements_of_the_same_moment_travel_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ACKNOWLEDGE_SECONDS", 0.2)
    packets: list[list[int]] = []
    sent = asyncio.Event()

    async def handle(topic: str, payload: bytes) -> None:
        """Done at once."""

    def acknowledge(ids: Sequence[int]) -> None:
        packets.append(list(ids))
        sent.set()

    inbox = Inbox(handle, acknowledge, lambda _: None, lambda _: None, 10)
    async with asyncio.TaskGroup() as group, asyncio.timeout(240):
        inbox.put(group, Publish("t", b"", 1))
        await asyncio.sleep(0)
        inbox.put(group, Publish("t", b"", 2))
        await sent.wait()
    assert packets == [[1, 2]]


async def test_messages_beyond_the_bound_wait_and_say_so() -> None:
    desk = Desk(bound=2)
    async with asyncio.TaskGroup() as group:
        desk.put(group, 1, 2, 3, 4)
        await turns()
        assert desk.begun == ["1", "2"]
        assert desk.full == [True]
        desk.gates["1"].set_result(None)
        await turns()
        assert desk.begun == ["1", "2", "3"]
        desk.gates["2"].set_result(None)
        await turns()
        assert desk.full == [True, False]
        desk.inbox.close()


async def test_messages_beyond_the_bytes_that_are_held_wait_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_HELD", 1000)
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        for number in range(1, 5):
            desk.inbox.put(group, Publish(str(number), b"x" * 600, number))
        await turns()
        assert (desk.begun, desk.full) == (["1", "2"], [True])
        desk.gates["1"].set_result(None)
        await turns()
        assert (desk.begun, desk.full) == (["1", "2", "3"], [True])
        desk.gates["2"].set_result(None)
        await turns()
        assert (desk.begun, desk.full) == (["1", "2", "3", "4"], [True, False])
        desk.gates["3"].set_result(None)
        desk.gates["4"].set_result(None)
        await turns()
        assert desk.acknowledged == [1, 2, 3, 4]


async def test_closing_leaves_unfinished_messages_unacknowledged() -> None:
    desk = Desk(bound=2)
    async with asyncio.TaskGroup() as group:
        desk.put(group, 1, 2, 3)
        await turns()
        desk.gates["1"].set_result(None)
        await asyncio.sleep(0)
        desk.inbox.close()
        desk.put(group, 4)
    assert desk.acknowledged == [1]
    assert "4" not in desk.begun


async def test_handler_whose_own_work_was_cancelled_does_not_hold_back_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        desk.put(group, 1, 2)
        await turns()
        desk.gates["1"].cancel()
        desk.gates["2"].set_result(None)
        await turns()
        assert desk.acknowledged == [1, 2]
    assert "work failed" in caplog.messages


async def test_message_that_cannot_be_handled_now_and_those_after_it_stay_unacknowledged() -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        desk.put(group, 1, 2, 3)
        await turns()
        desk.gates["1"].set_result(None)
        desk.gates["2"].set_exception(Unavailable("the store is away"))
        desk.gates["3"].set_result(None)
        await turns()
        assert desk.acknowledged == [1]
        assert desk.refused == ["the store is away"]


class Elsewhere:
    """An inbox whose messages are handled in tasks of others; the test ends them."""

    def __init__(self, bound: int = 100) -> None:
        self.work: dict[str, Ended] = {}
        self.acknowledged: list[int] = []
        self.refused: list[str] = []
        self.inbox = Inbox(self._begin, self.acknowledged.extend, lambda _: None, self.refused.append, bound)

    def _begin(self, topic: str, payload: bytes) -> Ended:
        ended = self.work[topic] = asyncio.get_running_loop().create_future()
        if payload:
            ended.set_result(None)
        return ended


async def test_work_that_has_its_own_task_gets_no_other() -> None:
    desk, tasks = Elsewhere(bound=2), len(asyncio.all_tasks())
    async with asyncio.TaskGroup() as group:
        for number in (1, 2, 3):
            desk.inbox.put(group, Publish(str(number), b"", number))
        assert (set(desk.work), len(asyncio.all_tasks())) == ({"1", "2"}, tasks)
        desk.work["2"].set_result(None)
        await turns()
        assert (set(desk.work), desk.acknowledged) == ({"1", "2", "3"}, [])
        desk.work["1"].set_result(ValueError("logged by who did the work"))
        desk.work["3"].set_result(None)
        await desk.inbox.settled()
    assert (desk.acknowledged, desk.refused) == ([1, 2, 3], [])


async def test_messages_that_are_handled_at_once_never_count_as_running() -> None:
    desk = Elsewhere(bound=1)
    async with asyncio.TaskGroup() as group:
        for number in range(1, 2001):
            desk.inbox.put(group, Publish(str(number), b"x", number))
        assert len(desk.work) == 2000
        desk.inbox.put(group, Publish("slow", b""))
        for number in range(2001, 4001):
            desk.inbox.put(group, Publish(str(number), b"x", number))
        assert len(desk.work) == 2001
        desk.work["slow"].set_result(None)
        await desk.inbox.settled()
    assert (len(desk.work), desk.acknowledged) == (4001, list(range(1, 4001)))


@pytest.mark.parametrize("failure", [Unavailable("the store is away"), Fenced("the store is away")])
async def test_work_elsewhere_that_cannot_be_done_now_stays_unacknowledged(failure: Exception) -> None:
    desk = Elsewhere()
    async with asyncio.TaskGroup() as group:
        for number in (1, 2):
            desk.inbox.put(group, Publish(str(number), b"", number))
        desk.work["1"].set_result(failure)
        desk.work["2"].set_result(None)
        await turns()
    assert (desk.acknowledged, desk.refused) == ([], ["the store is away"])


async def test_closing_cancels_what_waits_for_work_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    desk = Elsewhere()
    async with asyncio.TaskGroup() as group:
        desk.inbox.put(group, Publish("1", b"", 1))
        desk.inbox.close()
        assert desk.work["1"].cancelled()
        await turns()
    assert (desk.acknowledged, caplog.messages) == ([], [])


async def test_message_without_an_id_is_handled_and_not_acknowledged() -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        desk.inbox.put(group, Publish("t", b""))
        await turns()
        desk.gates["t"].set_result(None)
        await desk.inbox.settled()
    assert desk.acknowledged == []
