"""What an edge notes of its devices, and the question that it answers."""

import asyncio
from collections.abc import Mapping

import pytest

from fleet.ground.errors import Unavailable
from fleet.roles.edge import traces
from fleet.roles.edge.traces import TraceQueue
from fleet.roles.edge.transport.echo import MOST as MOST_ECHOES
from fleet.wire import echo
from tests.support.edge_stage import KEY, LIMIT, MAC, Stage, on_stage

TOKEN = b"12345678"


class Store:
    """Takes notes; refuses the first so many times."""

    def __init__(self, refusals: int = 0) -> None:
        self.written: dict[str, dict[str, str]] = {}
        self.times = 0
        self._refusals = refusals
        self.news = asyncio.Event()

    async def write(self, notes: Mapping[str, Mapping[str, str]]) -> None:
        self.times += 1
        if self.times <= self._refusals:
            raise Unavailable("Redis: away")
        for device, happened in notes.items():
            self.written.setdefault(device, {}).update(happened)
        self.news.set()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "PAUSE_SECONDS", 0.01)


async def running(noted: TraceQueue, store: Store) -> None:
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        task = group.create_task(noted.run(store.write))
        await store.news.wait()
        task.cancel()


async def test_notes_are_written_together_and_the_newest_of_each_kind_counts() -> None:
    noted, store = TraceQueue(), Store()
    for number in range(3):
        noted.note("a", "audio", f"s{number}")
    noted.note("a", "heard")
    noted.note("b", "heard")
    await running(noted, store)
    assert store.times == 1
    assert store.written["a"]["audio"].split()[1] == "s2"
    assert store.written["a"]["heard"].isdigit() and "b" in store.written


async def test_while_the_store_is_away_notes_wait_and_newer_ones_win() -> None:
    noted, store = TraceQueue(), Store(refusals=2)
    noted.note("a", "audio", "s1")
    await running(noted, store)
    assert store.times == 3
    assert store.written["a"]["audio"].endswith("s1")


async def test_what_is_left_at_the_end_is_written() -> None:
    noted, store = TraceQueue(), Store()
    task = asyncio.get_running_loop().create_task(noted.run(store.write))
    await asyncio.sleep(0)
    noted.note("a", "end", "s1 3 4")
    task.cancel()
    await asyncio.wait([task], timeout=LIMIT)
    assert store.written["a"]["end"].endswith("s1 3 4")


def test_there_is_a_bound() -> None:
    noted = TraceQueue()
    for number in range(traces.MOST + 1):
        noted.note(str(number), "heard")
    assert len(noted._waiting) == traces.MOST


async def test_a_conversation_leaves_its_traces() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "Hello.")
        await stage.told_at_least("start", "stop")
        await stage.send("session_closed")
        noted = stage.edge.traces._waiting[MAC]
    assert set(noted) == {"audio", "heard", "understood", "spoke", "end"}
    assert noted["audio"].split()[1:] == ["s1", f"127.0.0.1:{noted['audio'].rpartition(':')[2]}"]
    _, session, uplink, downlink = noted["end"].split()
    assert (session, int(uplink)) == ("s1", device.sequence)
    assert int(downlink) >= 3


async def test_a_session_without_a_packet_ends_with_none() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.send("session_closed")
        assert stage.edge.traces._waiting[MAC]["end"].endswith("s1 0 0")


async def ask(stage: Stage, number: int, key: bytes = KEY) -> None:
    stage.devices[0].send_raw(echo.ask(key, 0x11223344, number, TOKEN))


async def test_who_has_the_key_is_answered_and_is_no_device_for_that() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await ask(stage, 1)
        await stage.until(lambda: device.received)
        assert [echo.read(KEY, datagram) for datagram in device.received] == [TOKEN]
        assert "audio" not in stage.edge.traces._waiting.get(MAC, {})


async def test_who_has_not_is_not_and_nobody_is_answered_for_ever() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await ask(stage, 1, bytes(16))
        device.send_raw(device.seal(bytes(16), sequence=1, flags=echo.FLAGS))
        for number in range(2 * MOST_ECHOES):
            await ask(stage, number)
        await stage.received(2 * MOST_ECHOES + 2)
        await stage.until(lambda: len(device.received) >= MOST_ECHOES)
        assert len(device.received) == MOST_ECHOES
