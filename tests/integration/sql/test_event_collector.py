"""Events from the streams of shards into both kinds of database: each once, in order, whatever is killed when."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from sqlalchemy import func, select

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.shards.events import Outbox, OutboxCounts
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import LOST, EventLog, StoredEvent
from fleet.adapters.sql.history_schema import CONVERSATION, CONVERSATION_TURN, USAGE
from fleet.adapters.sql.usage_rows import UsageRows
from fleet.core.usage import day_of
from fleet.ground.errors import Fenced, Unavailable
from fleet.roles.control.leader.event_collector import EventCollector
from tests.support.memory_store import memory_store

SHARDS = 4
MACS = [f"aa:bb:cc:00:00:{number:02x}" for number in range(20)]


class Site:
    """Redis in memory, a database, and whoever collects."""

    def __init__(self, store: Store, database: Database) -> None:
        self.store, self.database = store, database
        self.fence = 0
        self.offered: list[StoredEvent] = []
        self.refreshed: list[str] = []
        self.epoch = 0

    async def collector(self, outbox: Outbox | None = None) -> EventCollector:
        self.fence += 1
        one = EventCollector(
            outbox or Outbox(self.store), self.database, self.refresh, self.offered.extend, range(SHARDS)
        )
        await one.begin(self.fence)
        return one

    async def refresh(self, macs: Iterable[str]) -> int:
        self.refreshed += macs
        return 0

    async def connect(self, count: int = 1) -> None:
        """Let devices connect, each with one event."""
        for _ in range(count):
            self.epoch += 1
            await Devices(self.store).appear(MACS[self.epoch % len(MACS)], online=True, epoch=self.epoch)

    async def emit(self, kind: str, data: str, mac: str = MACS[0]) -> None:
        key = self.store.keys.events(self.store.keys.shard(mac))
        await self.store.client.execute_command("XADD", key, "NOMKSTREAM", "*", "k", kind, "m", mac, "d", data)

    async def stored(self) -> list[StoredEvent]:
        return await EventLog(self.database).after(0, 10_000)


@pytest.fixture
async def site(database: Database) -> Site:
    return Site(await memory_store(shards=SHARDS), database)


async def test_events_are_stored_in_order_with_ids_without_holes(site: Site) -> None:
    collector = await site.collector()
    for _ in range(3):
        await site.connect(30)
        await collector.step()
    stored = await site.stored()
    assert [one.id for one in stored] == list(range(1, 91)) and site.offered == stored
    assert {one.kind for one in stored} == {"device.online"} and {one.tenant for one in stored} == {1}
    assert len(site.refreshed) == 60  # a device is copied once for each batch
    assert not any(await Outbox(site.store).waiting(range(SHARDS)))


class Killed(Exception):
    """The process ends here."""


class DeadlyOutbox(Outbox):
    """Ends the process before or after a step, by chance."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        super().__init__(store)
        self.chance = chance

    def _perhaps(self) -> None:
        if self.chance.random() < 0.3:
            raise Killed

    async def want(self, newest: Mapping[int, str]) -> None:
        await super().want(newest)
        self._perhaps()

    async def read(self, after: Mapping[int, str], most: int, seconds: float) -> Any:
        found = await super().read(after, most, seconds)
        self._perhaps()
        return found

    async def trim(self, read: Mapping[int, str]) -> dict[int, OutboxCounts]:
        self._perhaps()
        counts = await super().trim(read)
        self._perhaps()
        return counts


async def test_whoever_is_killed_between_any_steps_loses_nothing_and_doubles_nothing(site: Site) -> None:
    chance = random.Random(7)
    await site.collector()
    for _ in range(60):
        await site.connect(3)
        try:
            collector = await site.collector(DeadlyOutbox(site.store, chance))
            while await collector.step() or chance.random() < 0.5:
                await site.connect()
        except Killed:
            continue
    await (await site.collector()).step()
    stored = await site.stored()
    assert [one.id for one in stored] == list(range(1, site.epoch + 1))
    assert {one.kind for one in stored} == {"device.online"}
    # Each device once for each of its connections, in their order.
    assert sorted(MACS.index(_text(one.mac)) for one in stored) == sorted(
        epoch % len(MACS) for epoch in range(1, site.epoch + 1)
    )


def _text(mac: int) -> str:
    digits = f"{mac:012x}"
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


async def test_an_earlier_lease_stores_nothing_more(site: Site) -> None:
    old = await site.collector()
    new = await site.collector()
    await site.connect(5)
    with pytest.raises(Fenced):
        await old.step()
    await new.step()
    assert len(await site.stored()) == 5
    site.fence = 0
    with pytest.raises(Fenced):
        await site.collector()


async def test_events_that_the_bound_dropped_are_a_gap(site: Site) -> None:
    collector = await site.collector()
    await site.connect(40)
    await collector.step()
    await site.connect(40)
    for shard in range(SHARDS):
        key = site.store.keys.events(shard)
        for entry in (await Outbox(site.store).read({shard: "0-0"}, 3, 0.01))[:2]:
            await site.store.client.xdel(key, entry.id)
    await site.connect(4)
    await collector.step()
    await site.connect(4)
    await collector.step()
    again = await site.collector()
    await site.connect(20)
    await again.step()
    gaps = [one.data for one in await site.stored() if one.kind == LOST]
    assert sorted(gaps) == [f'{{"shard":{shard},"count":2}}' for shard in range(SHARDS)]


async def test_a_redis_that_lost_its_data_is_a_gap_of_unknown_size(site: Site) -> None:
    await (await site.collector()).step()
    await site.store.client.flushall()
    collector = await site.collector()
    await site.connect(20)
    await collector.step()
    assert [one.data for one in await site.stored()][:SHARDS] == [
        f'{{"shard":{shard},"count":null}}' for shard in range(SHARDS)
    ]
    assert len(await site.stored()) == SHARDS + 20


async def test_a_store_that_fails_keeps_the_events(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = await site.collector()
    await site.connect(3)

    async def away(macs: Iterable[str]) -> int:
        raise Unavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(collector, "_refresh", away)
        with pytest.raises(Unavailable):
            await collector.step()
    await (await site.collector()).step()
    assert len(await site.stored()) == 3


async def test_turns_add_to_the_usage_of_their_day(site: Site, database: Database) -> None:
    collector = await site.collector()
    for kind, data in (
        ("session.started", "{}"),
        ("tool.called", '{"tool":"x","turn":"t1"}'),
        ("tool.called", '{"tool":"x","turn":""}'),
        ("turn.answered", '{"turn":"t1","speech_ms":700,"input_tokens":9,"output_tokens":3,"agent":"a"}'),
        ("turn.failed", '{"turn":"t2","input_tokens":1}'),
        ("turn.shortened", '{"turn":"t1"}'),
        ("turn.spoken", '{"turn":"t1","spoken_ms":900}'),
        ("turn.answered", "no JSON"),
    ):
        await site.emit(kind, data)
    await collector.step()
    day = day_of((await site.stored())[0].at)
    rows = UsageRows(database, 1)
    (total,) = await rows.sums((), day, day + 2)
    assert total == {
        **{"sessions": 1, "turns": 3, "failed": 1, "interrupted": 0, "tool_calls": 1, "speech_ms": 700},
        **{"spoken_ms": 900, "input_tokens": 10, "cached_tokens": 0, "output_tokens": 3},
    }
    by_agent = await rows.sums(("device", "agent"), day, day + 2, mac=MACS[0])
    assert [(row["agent"], row["turns"]) for row in by_agent] == [("", 2), ("a", 1)]
    assert (await UsageRows(database, 2).sums((), day, day + 1))[0]["turns"] == 0


async def _count(database: Database, table: Any) -> int:
    async with database.reading() as connection:
        return int((await connection.execute(select(func.count()).select_from(table))).scalar_one())


async def test_what_was_said_becomes_conversations(site: Site, database: Database) -> None:
    collector = await site.collector()
    said: Sequence[tuple[str, str]] = (
        ("turn.answered", '{"turn":"t1","session":"s1","user":"Hi","answer":"Hello."}'),
        ("turn.answered", '{"turn":"t2","session":"s1","user":"More","answer":"A. B. C.","stages":{"heard":80}}'),
        ("turn.spoken", '{"turn":"t1","spoken_ms":700}'),
        ("turn.answered", '{"turn":"t3","session":"s1"}'),
        ("turn.failed", '{"turn":"t4","user":"typed","answer":"","typed":true}'),
    )
    for kind, data in said:
        await site.emit(kind, data)
    await collector.step()
    await site.emit("turn.shortened", '{"turn":"t2","session":"s1","user":"More","answer":"A."}')
    await site.emit("turn.spoken", '{"turn":"t2","spoken_ms":400,"first_audio_ms":650,"interrupted":true}')
    await collector.step()
    async with database.reading() as connection:
        found = await connection.execute(select(CONVERSATION).order_by(CONVERSATION.c.id))
        talks = {row.session: row.turns for row in found}
        turns = {row.turn: row for row in await connection.execute(select(CONVERSATION_TURN))}
    assert talks == {"s1": 2, "t4": 1}
    assert sorted(turns) == ["t1", "t2", "t4"]
    assert (turns["t1"].question, turns["t1"].outcome, turns["t1"].spoken_ms) == ("Hi", "answered", 700)
    assert (turns["t2"].answer, turns["t2"].outcome, turns["t2"].spoken_ms) == ("A.", "interrupted", 400)
    assert turns["t2"].stages == {"heard": 80, "first_audio": 650} and turns["t2"].search == "more\na."
    assert (turns["t4"].outcome, turns["t4"].typed) == ("failed", True)
    assert await _count(database, USAGE) == 1
