"""Live transcripts are written and read while somebody watches."""

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.transcripts import WATCHED_SECONDS, Transcripts, is_line
from tests.support.virtual_time import elapse

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


async def test_lines_of_watched_devices_are_read_in_order_from_where_the_reader_was(store: Store) -> None:
    transcripts = Transcripts(store)
    await transcripts.watch([MAC, OTHER])
    await transcripts.write(MAC, [("user", {"text": "灯"}), ("answer", {"text": "It is on."})])
    lines = [one for one in await transcripts.read({MAC: "0-0", OTHER: "0-0"}, 0.1) if is_line(one)]
    assert [(one.mac, one.kind) for one in lines] == [(MAC, "user"), (MAC, "answer")]
    assert lines[0].data == '{"text": "灯"}' and lines[0].at <= lines[1].at
    assert await transcripts.read({MAC: lines[0].id}, 0.1) == lines[1:]


async def test_what_nobody_watches_is_kept_nowhere(store: Store) -> None:
    transcripts = Transcripts(store)
    await transcripts.watch([OTHER])
    await transcripts.write(MAC, [("user", {"text": "a secret"})])
    assert not await store.client.exists(store.keys.transcript(MAC))


async def test_what_was_said_is_gone_soon_after_the_last_look(store: Store) -> None:
    transcripts = Transcripts(store)
    await transcripts.watch([MAC])
    await elapse(WATCHED_SECONDS * 0.9)
    await transcripts.watch([MAC])
    await elapse(WATCHED_SECONDS * 0.9)
    await transcripts.write(MAC, [("user", {"text": "still here"})])
    await elapse(WATCHED_SECONDS * 0.2)
    assert not await store.client.exists(store.keys.transcript(MAC))
    await transcripts.write(MAC, [("user", {"text": "too late"})])
    assert not await store.client.exists(store.keys.transcript(MAC))
