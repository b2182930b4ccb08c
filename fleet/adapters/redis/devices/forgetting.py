"""Deletes what Redis knows of a device."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, cast

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.debugging import DebuggedDevices
from fleet.adapters.redis.devices.traces import FIELDS, TraceStore
from fleet.adapters.redis.keys import owed_apologies, prefix

_SETTLED_SECONDS = 3.0
_UNKNOWN_SECONDS = 0.5
"""Wait for an unknown device's record; without a worker it never appears."""
_STEP = 0.05
_EVENTS_AT_ONCE = 1_000


async def forget(store: Store, macs: Sequence[str]) -> None:
    """Delete the data of devices that will not return, after pending writes about them.

    What expires within minutes stays (`erase` deletes it, too).

    Raises:
        Unavailable: Redis did not answer.
    """
    clock = asyncio.get_running_loop().time
    begun = clock()
    while (waited := clock() - begun) < _SETTLED_SECONDS:
        records = [await _record(store, mac) for mac in macs]
        if all(_is_settled(record) or (not record and waited > _UNKNOWN_SECONDS) for record in records):
            break
        await asyncio.sleep(_STEP)
    reminders = Reminders(store)
    for mac in macs:
        await reminders.clear(mac)
    pipe = store.client.pipeline(transaction=False)
    for mac in macs:
        names, shard = store.keys, store.keys.shard(mac)
        for name in (names.device, names.session, names.tools, names.turn, names.history, names.reports, names.memory):
            pipe.delete(name(mac))
        for key in (names.conversation(mac), names.persona(mac), names.claims(mac), admission_key(store, mac)):
            pipe.delete(key)
        for index in (names.seen, names.online, names.young, names.old, names.due, names.conversations):
            pipe.zrem(index(shard), mac)
    await store.ask(cast("Awaitable[list[Any]]", pipe.execute()))


async def erase(store: Store, mac: str) -> None:
    """Delete everything about a device that is not connected: no key, member or value in Redis has its MAC afterwards.

    It reads the names of all keys, page by page, because those of calls, replies and activations hold more than the
    MAC. If it ends early, it can be repeated: what says that the device exists goes last.

    Raises:
        Unavailable: Redis did not answer.
    """
    source = (await _record(store, mac)).get("src")
    await _leave_lists(store, mac)
    await _leave_indices(store, mac, source)
    indices = f"{prefix(store.keys.shard(mac))}*{mac}*"
    async for page in store.pages(indices):
        await _delete(store, page)
    await forget(store, [mac])


async def has_events(store: Store, mac: str) -> bool:
    """Return whether events of a device wait to be collected.

    Raises:
        Unavailable: Redis did not answer.
    """
    stream, after = store.keys.events(store.keys.shard(mac)), "-"
    while True:
        found = store.client.xrange(stream, min=after, count=_EVENTS_AT_ONCE)
        entries = await store.ask(cast("Awaitable[list[Any]]", found))
        if any(fields.get("m") == mac for _, fields in entries):
            return True
        if len(entries) < _EVENTS_AT_ONCE:
            return False
        after = f"({entries[-1][0]}"


async def _leave_lists(store: Store, mac: str) -> None:
    """Remove a device from the lists over all devices, and its reminders, whose own names their set has."""
    await Reminders(store).clear(mac)
    await Activations(store).withdraw(mac)
    await Claims(store).drop(mac)
    await TraceStore(store).drop_refusals(mac)
    await DebuggedDevices(store).set(mac, 0)
    await Revocations(store).forget(mac)


async def _leave_indices(store: Store, mac: str, source: str | None) -> None:
    """Remove a device from the indices of its shard."""
    names, shard = store.keys, store.keys.shard(mac)
    edges = store.client.smembers(names.session_edges(shard))
    pipe = store.client.pipeline(transaction=False)
    for edge in await store.ask(cast("Awaitable[set[str]]", edges)):
        pipe.srem(f"{prefix(shard)}e:{edge}", mac)
    pipe.srem(owed_apologies(shard), mac)
    if source is not None:
        pipe.zrem(f"{names.young(shard)}:{source}", mac)
    for calls in (names.deadlines(shard), names.operator_records(shard)):
        for member in await store.ask(cast("Awaitable[list[str]]", store.client.zrange(calls, 0, -1))):
            if member.startswith(f"{mac}|"):
                pipe.zrem(calls, member)
    for stream in (names.operator_calls(shard), names.job_outcomes(shard), names.state_outcomes(shard)):
        for entry, fields in await store.ask(cast("Awaitable[list[Any]]", store.client.xrange(stream))):
            if mac in fields.get("m", ""):
                pipe.xdel(stream, entry)
    pipe.zrem(names.seen(shard), mac)
    await store.ask(cast("Awaitable[list[Any]]", pipe.execute()))


async def _delete(store: Store, names: Iterable[str]) -> None:
    pipe, some = store.client.pipeline(transaction=False), False
    for name in names:
        pipe.delete(name)
        some = True
    if some:
        await store.ask(cast("Awaitable[list[Any]]", pipe.execute()))


async def _record(store: Store, mac: str) -> dict[str, str]:
    return await store.ask(cast("Awaitable[dict[str, str]]", store.client.hgetall(store.keys.device(mac))))


def _is_settled(record: Mapping[str, str]) -> bool:
    """Whether a device is offline, and its edge has written the end of its session."""
    return record.get("on") == "0" and (FIELDS["hello"] not in record or FIELDS["end"] in record)
