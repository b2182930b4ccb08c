"""Searches, on both kinds of database, compared with a plain evaluation of the query in Python."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, text

from fleet.adapters.sql import device_counts, device_search
from fleet.adapters.sql.agent_names import with_agent_ids
from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_conditions import Conditions, needle, search_text
from fleet.adapters.sql.device_counts import DeviceCounts, ValueCounts
from fleet.adapters.sql.device_matches import DeviceMatches
from fleet.adapters.sql.device_rows import DeviceChange, DeviceRows, NewDevice, RegisteredDevice
from fleet.adapters.sql.device_search import SORTS, CursorError, DeviceSearch, Sort
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, DEVICE_TAG, GROUP, GROUP_MEMBER, LISTED_TOOL, TENANT, TOOL_LIST
from fleet.core.query.conditions import AllOf, AnyOf, Comparison, Condition, FreeText, Negation
from fleet.core.query.fields import DEVICE_FIELDS, version_number
from fleet.core.query.parser import parse

NOW = datetime(2026, 11, 24, tzinfo=UTC)
MINE, OTHER = 1, 2
DEVICES = 60
QUERIES = [
    "",
    "online",
    "NOT online",
    "online=false",
    "board:bread-*",
    "board:BREAD",
    "board=esp-box",
    "board!=esp-box",
    "tag.site=berlin",
    "tag.site:b*",
    "tag.site!=berlin",
    "tag:floor",
    "tag:fl",
    "tool=self.screen.set_theme",
    "tool:self.*",
    "group=vip",
    "NOT group=vip",
    "firmware<2.5",
    "firmware=2.4",
    "firmware!=2.4.0",
    "NOT firmware<2.5",
    "last_seen>-3d",
    "last_seen<-3d AND online",
    "kitchen",
    "厨房",
    "厨",
    "100%",
    "a_b",
    "name:itch",
    'name="kitchen 3"',
    "agent=kids OR tag.site=oslo",
    "agent:kid*",
    "agent:DS",
    "agent:*",
    "agent!=kids",
    'agent=""',
    "agent=nobody",
    "NOT agent=nobody AND online",
    "(agent=kids OR tag.site=oslo) AND NOT online AND firmware>=2.5",
    "tag.site=berlin AND online AND board:bread-* AND firmware<2.5",
    "mac=02:00:00:00:00:07",
    "mac:02:00:00:00:00:1*",
    "02:00:00:00:00:07",
    "0000-07",
    "tag.site=nowhere",
    "state=bound AND sn-1",
    'notes:"it\'s"',
    '"it\'s \\"quoted\\""',
]


def make_devices(seed: int, tenant: int, first: int) -> list[RegisteredDevice]:
    random_ = random.Random(seed)
    devices = []
    for number in range(first, first + DEVICES):
        tags = {"site": random_.choice(["berlin", "oslo", "Bonn"])} | ({"floor": "3"} if number % 5 == 0 else {})
        devices.append(
            RegisteredDevice(
                mac=mac_text(0x020000000000 + number),
                tenant=tenant,
                name=random_.choice(["kitchen", "Kitchen", "厨房", "hall 100%", "a_b"]) + f" {number % 10}",
                notes=random_.choice(["", 'it\'s "quoted" here']),
                attributes={},
                agent=random_.choice(["", "", "kids", "kiosk"]),
                version=1,
                state=random_.choice(["bound", "registered"]),
                board=random_.choice(["bread-compact", "bread-ml307", "esp-box"]),
                firmware=random_.choice(["2.4.0", "2.4", "2.5.1", "2.10.0", "custom", ""]),
                serial=f"SN-{number}",
                client="",
                language="",
                key=f"k{number % 2}",
                online=random_.random() < 0.6,
                first_seen=0,
                last_seen=random_.choice([0, round((NOW.timestamp() - random_.randrange(600_000)) * 1000)]),
                last_boot=0,
                tags=tags,
            )
        )
    return devices


def tools_of(device: RegisteredDevice) -> list[str]:
    return ["self.reboot", *(["self.screen.set_theme"] if mac_number(device.mac) % 4 == 0 else [])]


async def add_agents(database: Database, tenant: int, names: Iterable[str]) -> dict[str, str]:
    """Return what the column `device.agent` has for each of these agents."""
    made = [await AgentRows(database, tenant).add(name, "", {}, 0) for name in sorted(names)]
    return {agent.name: str(agent.id) for agent in made}


async def fill(database: Database, devices: Sequence[RegisteredDevice], vip: int) -> None:
    agents = await add_agents(database, devices[0].tenant, {one.agent for one in devices} - {""})
    rows = [
        {column.name: getattr(one, column.name) for column in DEVICE.c if hasattr(one, column.name)}
        | {"agent": agents.get(one.agent, "")}
        | {"mac": (number := mac_number(one.mac)), "firmware_number": version_number(one.firmware)}
        | {"search": search_text(number, one.name, one.serial, one.notes)}
        for one in devices
    ]
    tags = [
        {"tenant": one.tenant, "key": key, "value": value, "mac": mac_number(one.mac)}
        for one in devices
        for key, value in one.tags.items()
    ]
    lists = {mac_number(one.mac): tuple(tools_of(one)) for one in devices}
    numbers = {names: number for number, names in enumerate(sorted(set(lists.values())), devices[0].tenant * 100)}
    for row in rows:
        row["tool_list"] = numbers[lists[row["mac"]]]
    kept = [{"id": number, "digest": str(number)} for number in numbers.values()]
    tools = [{"list": number, "tool": tool} for names, number in numbers.items() for tool in names]
    async with database.writing() as connection:
        await connection.execute(insert(TOOL_LIST), kept)
        await connection.execute(insert(LISTED_TOOL), tools)
        await connection.execute(insert(DEVICE), rows)
        await connection.execute(insert(DEVICE_TAG), tags)
        group = {"tenant": devices[0].tenant, "name": "vip"}
        [number] = (await connection.execute(insert(GROUP).returning(GROUP.c.id), group)).one()
        members = [{"group": number, "mac": mac_number(one.mac)} for one in devices[:vip]]
        await connection.execute(insert(GROUP_MEMBER), members)


def meets(device: RegisteredDevice, condition: Condition, vips: set[str]) -> bool:
    if isinstance(condition, AllOf):
        return all(meets(device, part, vips) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return any(meets(device, part, vips) for part in condition.parts)
    if isinstance(condition, Negation):
        return not meets(device, condition.part, vips)
    if isinstance(condition, FreeText):
        text = search_text(mac_number(device.mac), device.name, device.serial, device.notes)
        return needle(condition.text) in text
    if condition.operator == "!=":
        return not meets(device, replace(condition, operator="="), vips)
    return any(compares(value, condition) for value in values_of(device, condition, vips))


def values_of(device: RegisteredDevice, condition: Comparison, vips: set[str]) -> list[Any]:
    if condition.field == "tag":
        return [device.tags[condition.key]] if condition.key in device.tags else [] if condition.key else [*device.tags]
    if condition.field == "tool":
        return tools_of(device)
    if condition.field == "group":
        return ["vip"] if device.mac in vips else []
    if condition.field == "firmware":
        number = version_number(device.firmware)
        return [] if number is None else [number]
    return [getattr(device, condition.field)]


def compares(value: Any, condition: Comparison) -> bool:
    wanted: Any = condition.value
    if condition.field == "tag" and not condition.key:
        return bool(value == wanted)
    if condition.operator == ":":
        pattern = ".*".join(map(re.escape, wanted.split("*")))
        return bool((re.fullmatch if "*" in wanted else re.search)(pattern, value, re.IGNORECASE | re.DOTALL))
    compare = {"=": value == wanted, "<": value < wanted, ">": value > wanted, "<=": value <= wanted}
    return bool(compare.get(condition.operator, value >= wanted))


async def all_pages(search: DeviceSearch, condition: Condition, sort: Sort, limit: int) -> list[str]:
    found, cursor = [], ""
    for _ in range(DEVICES):
        page = await search.page(condition, sort=sort, cursor=cursor, limit=limit)
        found += [device.mac for device in page.devices]
        assert len(page.devices) <= limit
        if not (cursor := page.cursor):
            return found
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize(("few", "middle", "window"), [(2_000, 0, 5_000), (0, 0, 7), (0, 1_000, 7), (15, 30, 3)])
async def test_every_query_finds_what_its_words_say(
    database: Database, monkeypatch: pytest.MonkeyPatch, few: int, middle: int, window: int
) -> None:
    """With small limits the search goes each of its ways: by an index, along it, and in windows over a sort order."""
    monkeypatch.setattr(device_search, "_FEW", few)
    monkeypatch.setattr(device_search, "_MIDDLE", middle)
    monkeypatch.setattr(device_search, "_WINDOW", window)
    mine, others = make_devices(1, MINE, 0), make_devices(2, OTHER, DEVICES)
    async with database.writing() as connection:
        await connection.execute(insert(TENANT), {"id": OTHER, "slug": "other", "name": "Other", "created": 0})
    await fill(database, mine, 9)
    await fill(database, others, 30)
    search, vips = DeviceSearch(database, MINE), {one.mac for one in mine[:9]}
    for number, query in enumerate(QUERIES):
        condition = parse(query, DEVICE_FIELDS, NOW)
        expected = [one for one in mine if meets(one, condition, vips)]
        sort = SORTS[number % len(SORTS)]
        found = await all_pages(search, condition, sort, limit=13)
        key = sort.removeprefix("-")
        in_order = sorted(expected, key=lambda one: (getattr(one, key), one.mac), reverse=sort != key)
        assert found == [one.mac for one in in_order], query
        count, complete = await search.count(condition)
        assert count == len(expected) if complete else count <= len(expected), query
        assert complete or few < DEVICES, query


async def test_few_devices_are_matched_as_they_are_found(database: Database) -> None:
    devices = make_devices(1, MINE, 0)
    await fill(database, devices, 9)
    vips = {one.mac for one in devices[:9]}
    conditions = [parse(query, DEVICE_FIELDS, NOW) for query in QUERIES]
    met = await DeviceMatches(database).matching(MINE, conditions, [mac_number(one.mac) for one in devices])
    for query, condition, found in zip(QUERIES, conditions, met, strict=True):
        assert found == {mac_number(one.mac) for one in devices if meets(one, condition, vips)}, query


@pytest.mark.parametrize("query", ["agent=kids", "agent:kid*", 'agent=""'])
async def test_an_index_names_the_devices_of_an_agent(database: Database, query: str) -> None:
    await fill(database, make_devices(1, MINE, 0), 1)
    async with database.writing() as connection:
        condition = await connection.run_sync(with_agent_ids, MINE, parse(query, DEVICE_FIELDS, NOW))
        [source] = Conditions(MINE, database.is_sqlite).sources(condition)
        if not database.is_sqlite:  # For so few rows everything else is cheaper.
            await connection.execute(text("SET LOCAL enable_seqscan = off"))
            for index in DEVICE.indexes:
                if index.name != "device_tenant_agent":
                    await connection.execute(text(f"DROP INDEX {index.name}"))
        statement = source.compile(connection.engine, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN" if database.is_sqlite else "EXPLAIN"
        plan = " ".join(map(str, await connection.execute(text(f"{explain} {statement}"))))
    assert "device_tenant_agent" in plan
    assert "Filter" not in plan, "PostgreSQL would look at all devices of the tenant"


async def test_a_wrong_cursor_is_refused(database: Database) -> None:
    await fill(database, make_devices(1, MINE, 0), 1)
    search, everything = DeviceSearch(database, MINE), parse("", DEVICE_FIELDS, NOW)
    cursor = (await search.page(everything, limit=5)).cursor
    for damaged in ("x", cursor[:-4], "W10", "e30", "A" * 1_500, "\udcff"):
        with pytest.raises(CursorError, match="damaged"):
            await search.page(everything, cursor=damaged)
    with pytest.raises(CursorError, match="another query"):
        await search.page(parse("online", DEVICE_FIELDS, NOW), cursor=cursor)
    with pytest.raises(CursorError, match="another query"):
        await DeviceSearch(database, OTHER).page(everything, cursor=cursor)


async def test_a_moving_time_does_not_end_a_listing(database: Database) -> None:
    await fill(database, make_devices(1, MINE, 0), 1)
    search = DeviceSearch(database, MINE)
    first = await search.page(parse("last_seen>-7d", DEVICE_FIELDS, NOW), limit=5)
    later = parse("last_seen>-7d", DEVICE_FIELDS, NOW.replace(minute=1))
    assert (await search.page(later, cursor=first.cursor, limit=5)).devices


async def test_a_search_reads_names_that_were_changed(database: Database) -> None:
    rows, search = DeviceRows(database, MINE), DeviceSearch(database, MINE)
    await rows.add([NewDevice("02:00:00:00:00:01", name="Kitchen")])
    await rows.change("02:00:00:00:00:01", DeviceChange(name="Salon"))
    for word, found in (("kitchen", 0), ("SALON", 1)):
        assert len((await search.page(parse(word, DEVICE_FIELDS, NOW))).devices) == found
    await rows.forget("02:00:00:00:00:01")
    assert (await search.page(parse("salon", DEVICE_FIELDS, NOW))).devices == []


@pytest.mark.parametrize(
    "field", ["board", "firmware", "online", "state", "agent", "language", "key", "tool", "tag.site"]
)
async def test_counts_by_a_field_are_those_of_the_devices(
    database: Database, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    devices = make_devices(3, MINE, 0)
    await fill(database, devices, 1)
    counts = DeviceCounts(database)
    for query in ("", "online"):
        condition = parse(query, DEVICE_FIELDS, NOW)
        values = [value for one in devices if meets(one, condition, set()) for value in counted(one, field)]
        found = await counts.by(MINE, field, condition)
        assert found == ValueCounts(dict(Counter(values)), True)
        assert list(found.values.values()) == sorted(found.values.values(), reverse=True)
    assert (await counts.by(OTHER, field)).values == {}
    monkeypatch.setattr(device_counts, "_NAMED", 0)
    monkeypatch.setattr(device_counts, "_MOST_DEVICES", 10)
    some = await counts.by(MINE, field, parse("online", DEVICE_FIELDS, NOW))
    first = [value for one in devices[:10] if one.online for value in counted(one, field)]
    assert some == ValueCounts(dict(Counter(first)), False)


def counted(device: RegisteredDevice, field: str) -> list[str]:
    if field == "tool":
        return tools_of(device)
    if field.startswith("tag."):
        return [device.tags["site"]]
    value = getattr(device, field)
    return [str(value).lower() if isinstance(value, bool) else value]


async def test_all_devices_of_a_large_tenant_are_counted_once_in_ten_seconds(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_counts, "_LARGE", 10)
    # A busy machine may take longer than ten seconds.
    monkeypatch.setattr(device_counts, "_KEPT_SECONDS", 240.0)
    await fill(database, make_devices(3, MINE, 0), 1)
    counts = DeviceCounts(database)
    before = await counts.by(MINE, "board")
    await DeviceRows(database, MINE).forget(mac_text(0x020000000000))
    assert await counts.by(MINE, "board") == before
    monkeypatch.setattr(device_counts, "_KEPT_SECONDS", 0.0)
    assert sum((await counts.by(MINE, "board")).values.values()) == DEVICES - 1
