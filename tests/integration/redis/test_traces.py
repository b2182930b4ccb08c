"""What is kept of a device for whoever asks why it is silent."""

from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices import traces
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.forgetting import forget
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.devices.view import read_device_view
from fleet.adapters.redis.sessions.sessions import SessionRecord, Sessions
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.messages import AudioFormat
from tests.support.known_device import note_device

UPLINK = AudioFormat(16_000, 60)


def session(mac: str, name: str) -> SessionRecord:
    return SessionRecord(name, mac, "xiaozhi", "e1", 1, "00" * 16, UPLINK, UPLINK)


async def test_what_happens_anyway_leaves_its_time(store: Store, owner: Owner, mac: str) -> None:
    assert not (await read_device_view(store, mac)).known
    await note_device(store, mac, {"board": "b", "fw": "1.0.0", "kid": "k1"})
    await Devices(store).appear(mac, online=True, epoch=5, owner=owner)
    await Sessions(store).open(owner, session(mac, "s1"))
    known = await read_device_view(store, mac)
    assert known.bootstrap and known.at("presence") and known.at("hello")
    assert abs(known.at("hello") - known.bootstrap) < 60
    assert known.last_session == "s1" and known.session["edge"] == "e1" and not known.edge_lives
    await Sessions(store).close(owner, mac, "s1", "unused")
    known = await read_device_view(store, mac)
    assert known.last_session == "s1" and known.traces["goodbye"].words == "unused" and not known.session


async def test_notes_of_many_devices_are_written_at_once(store: Store) -> None:
    macs = [f"02:00:00:00:00:{number:02x}" for number in range(20)]
    await TraceStore(store).write(
        {mac: {"audio": f"1700000000 s1 192.0.2.{n}:5", "heard": "1700000001"} for n, mac in enumerate(macs)}
    )
    for number, mac in enumerate(macs):
        known = await read_device_view(store, mac)
        assert known.traces["audio"] == type(known.traces["audio"])(1_700_000_000, f"s1 192.0.2.{number}:5")
        assert known.at("heard") == 1_700_000_001 and known.at("spoke") == 0
        assert await store.client.ttl(store.keys.device(mac)) > 0


async def test_a_refused_hello_is_noted_with_its_reason(store: Store, mac: str) -> None:
    await TraceStore(store).note(mac, "refused", "no edge is ready")
    assert (await read_device_view(store, mac)).traces["refused"].words == "no edge is ready"


async def test_refused_bootstraps_are_remembered_in_bounds(store: Store, mac: str) -> None:
    noted = TraceStore(store)
    await noted.record_refusal(mac, "not bound")
    known = (await read_device_view(store, mac)).refusal
    assert known is not None and known.words == "not bound"
    bound, traces.MOST_REFUSED = traces.MOST_REFUSED, 3
    try:
        for number in range(8):
            await noted.record_refusal(f"02:00:00:00:00:{number:02x}", "not on the list")
    finally:
        traces.MOST_REFUSED = bound
    assert await store.client.zcard("{refused}:bootstrap") == 3


async def test_who_is_forgotten_leaves_nothing(store: Store, owner: Owner, mac: str) -> None:
    await note_device(store, mac, {"board": "b"})
    await Devices(store).appear(mac, online=False, epoch=5, owner=owner)
    await Revocations(store).add(mac)
    assert (await read_device_view(store, mac)).revoked
    await forget(store, [mac])
    known = await read_device_view(store, mac)
    assert not known.known and known.bootstrap is None
