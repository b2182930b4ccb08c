"""What the registry copies of devices. Whole copies are tested in integration/sql/test_device_copies."""

from datetime import UTC, datetime

import pytest

from fleet.adapters.redis.access.activations import PENDING_SECONDS
from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.facts import PAGE, FactReader, pages_of
from fleet.adapters.redis.devices.tools import pack_tools
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.core.device_facts import DeviceFacts
from fleet.wire.mcp import ToolSpec
from tests.support.memory_store import memory_store

MACS = [f"02:00:00:00:00:{number:02x}" for number in range(1, 30)]
MAC, SECOND, THIRD = MACS[:3]
AT = 1_800_000_000


@pytest.fixture
async def store() -> Store:
    """A store with several shards, over which devices must be put together again."""
    return await memory_store()


async def facts(store: Store, mac: str = MAC, refused: tuple[int, str] | None = None) -> DeviceFacts:
    (found,) = await FactReader(store).read([mac], {mac: refused} if refused else {})
    return found


async def write(store: Store, *, mac: str = MAC, boot: int = 0, **record: str) -> None:
    if record:
        await store.client.hset(store.keys.device(mac), mapping=record)  # type: ignore[arg-type]
    if boot:
        await store.client.zadd(store.keys.seen(store.keys.shard(mac)), {mac: boot})


async def admit(store: Store, mac: str = MAC, **record: str) -> None:
    await store.client.hset(admission_key(store, mac), mapping=record)  # type: ignore[arg-type]


async def test_of_an_unknown_device_only_its_mac_is_there(store: Store) -> None:
    found = await facts(store)
    assert found == DeviceFacts(MAC, stranger=True) and not found.known
    assert await FactReader(store).read([], {}) == []


async def test_each_fact_comes_from_its_own_field(store: Store) -> None:
    record = {
        "board": "b",
        "fw": "2.4.1",
        "lang": "zh-CN",
        "pg": "digest",
        "tep": "5",
        "ep": "5",
        "kid": "k1",
        "ten": "7",
    }
    await write(store, boot=AT, on="1", tp=str(AT - 9), **record)
    await admit(store, bound="1", client="c1", serial="SN1", how="code")
    assert await facts(store) == DeviceFacts(
        MAC,
        state="bound",
        board="b",
        firmware="2.4.1",
        serial="SN1",
        client="c1",
        language="zh-CN",
        key="k1",
        online=True,
        presence_at=(AT - 9) * 1000,
        last_boot=AT * 1000,
        pages="digest",
        has_tools=True,
        tenant=7,
    )


async def test_devices_of_several_shards_come_in_the_order_asked_for(store: Store) -> None:
    for number, mac in enumerate(MACS):
        await write(store, mac=mac, boot=AT + number, board=f"b{number}")
        await admit(store, mac, serial=f"SN{number}")
    await Revocations(store).add(SECOND)
    found = await FactReader(store).read(MACS, {THIRD: (AT + 100, "not on the list")})
    assert [(one.mac, one.board, one.serial, one.last_boot // 1000 - AT) for one in found] == [
        (mac, f"b{number}", f"SN{number}", number) for number, mac in enumerate(MACS)
    ]
    assert [one.state for one in found[:4]] == ["registered", "revoked", "refused", "registered"]


async def test_texts_are_cut_to_what_their_columns_take(store: Store) -> None:
    await write(store, board="b" * 70, fw="1\0.2", lang="l" * 40, kid="k" * 40)
    await admit(store, serial="s" * 70, client="c" * 70)
    found = await facts(store)
    assert (found.board, found.firmware, found.language, found.key) == ("b" * 64, "1.2", "l" * 32, "k" * 32)
    assert (found.serial, found.client) == ("s" * 64, "c" * 64)


@pytest.mark.parametrize(
    ("user", "of", "key"), [("device.k2.first.1", "5", "k2"), ("device.k2.first.1", "4", "k1"), ("other", "5", "k1")]
)
async def test_the_key_is_that_of_the_connection_else_that_of_the_last_bootstrap(
    store: Store, user: str, of: str, key: str
) -> None:
    await write(store, ep="5", cep=of, cu=user, kid="k1")
    assert (await facts(store)).key == key


async def test_a_state_goes_from_revoked_to_bound_to_refused_to_registered(store: Store) -> None:
    await admit(store, unbound="1")
    assert (await facts(store)).state == "registered"
    await write(store, mac=SECOND, ep="1")
    await write(store, mac=THIRD, boot=AT)
    assert [(await facts(store, mac)).state for mac in (SECOND, THIRD)] == ["registered", "registered"]
    refused = AT, "not on the list"
    assert (await facts(store, refused=refused)).state == "refused"
    await admit(store, bound="1")
    assert (await facts(store, refused=refused)).state == "bound"
    await Revocations(store).add(MAC)
    assert (await facts(store, refused=refused)).state == "revoked"


async def test_a_refusal_counts_until_the_device_boots(store: Store) -> None:
    await write(store, boot=AT)
    states = [(await facts(store, refused=(AT + more, "not on the list"))).state for more in (0, 1)]
    assert states == ["registered", "refused"]


async def test_a_device_waits_for_an_owner_as_long_as_its_code_holds(store: Store) -> None:
    now = int(datetime.now(UTC).timestamp())
    ages = (PENDING_SECONDS - 60, PENDING_SECONDS + 60)
    assert [(await facts(store, refused=(now - age, "not bound"))).state for age in ages] == ["waiting", "refused"]


@pytest.mark.parametrize(
    ("admission", "stranger"),
    [
        ({"bound": "1", "how": "first", "client": "c"}, True),
        ({"bound": "1", "how": "code", "client": "c"}, False),
        ({"bound": "1", "how": "mac"}, False),
        ({"bound": "1", "how": "key", "client": "c"}, False),
        ({"bound": "1", "client": "c"}, False),
        ({"how": "code"}, True),
        ({"unbound": "1"}, False),
    ],
)
async def test_a_stranger_is_one_whom_no_operator_bound(
    store: Store, admission: dict[str, str], stranger: bool
) -> None:
    await write(store, boot=AT)
    await admit(store, **admission)
    assert (await facts(store)).stranger is stranger


async def test_nobody_is_a_stranger_who_connected_or_was_revoked(store: Store) -> None:
    await write(store, boot=AT, ep="5")
    await Revocations(store).add(SECOND)
    assert [(await facts(store, mac)).stranger for mac in (MAC, SECOND)] == [False, False]


@pytest.mark.parametrize(
    ("on", "epoch", "trace", "ms"),
    [
        ("1", AT * 1_000_000 + 7_000, str(AT), AT * 1000 + 7),
        ("1", (AT + 3_599) * 1_000_000, str(AT), (AT + 3_599) * 1000),
        ("1", (AT - 3_599) * 1_000_000, str(AT), (AT - 3_599) * 1000),
        ("1", (AT + 3_600) * 1_000_000, str(AT), AT * 1000),
        ("0", AT * 1_000_000 + 7_000, str(AT), AT * 1000),
        ("1", 5, "", 0),
        ("1", 5, "never", 0),
    ],
)
async def test_the_time_of_a_connection_is_its_epoch_where_the_broker_counts_in_microseconds(
    store: Store, on: str, epoch: int, trace: str, ms: int
) -> None:
    await write(store, on=on, ep=str(epoch), tp=trace)
    assert (await facts(store)).presence_at == ms


async def test_the_names_of_tools_are_sorted_and_single(store: Store) -> None:
    tools = [ToolSpec(name=name, description="", input_schema={}) for name in ("b", "a", "b")]
    await store.client.set(store.keys.tools(MAC), await pack_tools(tools))
    assert await FactReader(store).tools(MAC) == ("a", "b")


async def test_connected_devices_are_found_counted_and_missed_in_all_shards(store: Store) -> None:
    reader, devices = FactReader(store), Devices(store)
    for mac in MACS[:20]:
        await devices.appear(mac, online=True, epoch=5)
    assert await reader.online_count() == 20
    assert sorted([mac async for page in reader.online() for mac in page]) == MACS[:20]
    assert sorted(await reader.disconnected(MACS)) == MACS[20:]
    assert await reader.disconnected([]) == []


async def test_a_mac_is_found_wherever_redis_knows_it(store: Store) -> None:
    await write(store, mac=MACS[0], boot=AT)
    await Devices(store).appear(MACS[1], online=True, epoch=5)
    await Revocations(store).add(MACS[2])
    await store.client.hset(store.keys.claims(MACS[3]), "c", f"{AT} {AT} 1 192.0.2.1")
    await Claims(store).note(MACS[3], "192.0.2.1")
    await TraceStore(store).record_refusal(MACS[4], "not bound")
    await admit(store, MACS[5], bound="1")
    await store.client.set("f:{1}:o:other", "1")
    assert {mac async for page in FactReader(store).all() for mac in page} == set(MACS[:6])


async def test_boots_come_in_pages_none_of_which_parts_a_second(store: Store) -> None:
    shard, reader = store.keys.shard(MAC), FactReader(store)
    index = store.keys.seen(shard)
    assert await reader.booted_since(shard, AT) == ([], AT)
    early = {f"02:00:00:00:01:{number:02x}": AT + 1 + number // 60 for number in range(PAGE)}
    crowd = {f"02:00:00:00:02:{number:02x}": AT + 3 for number in range(PAGE + 20)}
    last = {SECOND: AT + 9}
    await store.client.zadd(index, {MAC: AT, **early, **crowd, **last})
    first, at = await reader.booted_since(shard, AT)
    assert (first, at) == (sorted(early)[:60], AT + 1)
    second, at = await reader.booted_since(shard, at)
    assert (second, at) == (sorted(early)[60:], AT + 2)
    third, at = await reader.booted_since(shard, at)
    assert (third, at) == (sorted(crowd), AT + 3)
    assert await reader.booted_since(shard, at) == ([SECOND], AT + 9)


def test_pages_have_each_mac_once_and_as_many_as_can_be_read() -> None:
    macs = [f"{number}" for number in range(PAGE + 1)]
    assert pages_of([*macs, *macs]) == [macs[:PAGE], macs[PAGE:]]
