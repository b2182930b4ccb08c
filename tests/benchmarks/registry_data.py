"""Fills a database of control, and a Redis that agrees with it, with made-up devices of three tags each."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg
import redis
from sqlalchemy.engine import URL

from fleet.adapters.redis.keys import Keys, prefix
from fleet.adapters.sql.device_conditions import search_text
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.query.fields import version_number

FIRST_MAC = 0x020000000000
SITES = [f"site-{number}" for number in range(200)]
FLOORS = [str(number) for number in range(20)]
BATCHES = [f"batch-{number}" for number in range(2_000)]
BOARDS = [*(f"bread-compact-{number}" for number in range(6)), *(f"esp-box-{number}" for number in range(6))]
VERSIONS = ["2.0.1", "2.2.0", "2.3.1", "2.4.0", "2.4.2", "2.5.0", "2.5.1", "dev"]
WORDS = ["kitchen", "lobby", "hall", "office", "garden", "workshop", "厨房", "客厅", "前台", "waiting room"]
NOW = int(time.time()) // 60 * 60_000
"""No device may have booted in the future: control would copy it again and again as one that has just booted."""
_LISTS = 4
_BATCH = 20_000
_DEVICE = (
    *("mac", "tenant", "name", "notes", "attributes", "board", "firmware", "firmware_number", "serial", "state"),
    *("online", "first_seen", "last_seen", "last_boot", "tool_list", "search"),
)
_TAG = ("tenant", "key", "value", "mac")


def device_rows(count: int, seed: int = 1) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `device` with the columns `_DEVICE`."""
    draw = random.Random(seed)
    numbers = {text: version_number(text) for text in VERSIONS}
    for number in range(count):
        mac, name = FIRST_MAC + number, f"{draw.choice(WORDS)} {draw.randrange(100_000)}"
        serial, firmware = f"SN{number:08}", draw.choice(VERSIONS)
        seen = NOW - draw.randrange(90 * 86_400) * 1000  # Redis has whole seconds
        yield (
            *(mac, 1, name, "", "{}", draw.choice(BOARDS), firmware, numbers[firmware], serial, "bound"),
            *(draw.random() < 0.7, seen - 1000, seen, seen, 1 + number % _LISTS, search_text(mac, name, serial, "")),
        )


def tag_rows(count: int, seed: int = 2) -> Iterator[tuple[int, str, str, int]]:
    """Yield rows of `device_tag` with the columns `_TAG`, three of each device."""
    draw = random.Random(seed)
    for number in range(count):
        for key, values in (("site", SITES), ("floor", FLOORS), ("batch", BATCHES)):
            yield 1, key, draw.choice(values), FIRST_MAC + number


async def fill(url: URL, count: int) -> None:
    """Add devices to an empty, migrated database; indices are made when all rows are there."""
    if url.get_backend_name() == "sqlite":
        await asyncio.to_thread(_fill_sqlite, url.database or "", count)
    else:
        await _fill_postgres(url, count)


def _fill_sqlite(path: str, count: int) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in ("synchronous=OFF", "cache_size=-500000", "foreign_keys=OFF"):
        database.execute(f"PRAGMA {pragma}")
    kept = "type = 'index' AND tbl_name IN ('device', 'device_tag') AND sql IS NOT NULL OR type = 'trigger'"
    found = database.execute(f"SELECT type, name, sql FROM sqlite_master WHERE {kept}").fetchall()
    database.execute("BEGIN")
    for kind, name, _ in found:
        database.execute(f"DROP {kind} {name}")
    database.executemany("INSERT INTO tool_list (id, digest) VALUES (?, ?)", _lists())
    database.executemany("INSERT INTO listed_tool (tool, list) VALUES (?, ?)", _tools())
    for table, columns, rows in _tables(count):
        marks = ", ".join("?" * len(columns))
        database.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
    database.execute("INSERT INTO device_search (device_search) VALUES ('rebuild')")
    for _, _, statement in found:
        database.execute(statement)
    database.execute("COMMIT")
    database.execute("ANALYZE")
    database.close()


def fill_redis(url: str, shards: int, count: int) -> None:
    """Add what Redis knows of the devices of `device_rows`: without that, control takes them for gone."""
    keys = Keys(shards)
    with redis.Redis.from_url(url) as client:
        pipe = client.pipeline(transaction=False)
        seen: dict[str, dict[str, float]] = {}
        for row in device_rows(count):
            device = dict(zip(_DEVICE, row, strict=True))
            mac, on = mac_text(device["mac"]), int(device["online"])
            pipe.hset(keys.device(mac), mapping={"on": on, "board": device["board"], "fw": device["firmware"]})
            owner = {"bound": 1, "how": "mac", "serial": device["serial"]}
            pipe.hset(f"{prefix(keys.shard(mac))}o:{mac}", mapping=owner)
            for name in (keys.seen(keys.shard(mac)), *([keys.online(keys.shard(mac))] if on else [])):
                seen.setdefault(name, {})[mac] = device["last_boot"] // 1000
            if len(pipe) >= _BATCH:
                pipe.execute()
        for name, members in seen.items():
            pipe.zadd(name, members)
        pipe.execute()


async def _fill_postgres(url: URL, count: int) -> None:
    connection = await asyncpg.connect(host=url.host, port=url.port, user=url.username, database=url.database)
    kept = "tablename IN ('device', 'device_tag') AND indexname NOT LIKE '%\\_pk'"
    found = await connection.fetch(f"SELECT indexname, indexdef FROM pg_indexes WHERE {kept}")
    for row in found:
        await connection.execute(f"DROP INDEX {row['indexname']}")
    await connection.execute("SET maintenance_work_mem = '512MB'")
    await connection.copy_records_to_table("tool_list", records=_lists(), columns=("id", "digest"))
    await connection.copy_records_to_table("listed_tool", records=_tools(), columns=("tool", "list"))
    for table, columns, rows in _tables(count):
        for batch in _batches(rows):
            await connection.copy_records_to_table(table, records=batch, columns=columns)
    for row in found:
        await connection.execute(row["indexdef"], timeout=3600)
    await connection.execute("VACUUM ANALYZE", timeout=3600)
    await connection.close()


def _tables(count: int) -> Sequence[tuple[str, tuple[str, ...], Iterator[tuple[Any, ...]]]]:
    return (("device", _DEVICE, device_rows(count)), ("device_tag", _TAG, tag_rows(count)))


def _lists() -> list[tuple[int, str]]:
    return [(number, str(number)) for number in range(1, _LISTS + 1)]


def _tools() -> list[tuple[str, int]]:
    return [(f"self.tool_{tool}", number) for number in range(1, _LISTS + 1) for tool in range(4 + number)]


def _batches(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    batch: list[tuple[Any, ...]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch
