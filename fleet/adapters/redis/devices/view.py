"""All data about one device, to find out why it is silent."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.access.admissions import Admission, admission_key
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.devices.traces import FIELDS, TraceStore
from fleet.adapters.redis.shards.edges import Edges


@dataclass(frozen=True, slots=True)
class Trace:
    """The time of an event, in seconds since 1970, and its details."""

    at: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class DeviceView:
    """The data of one device in Redis.

    `record` is its hash, `traces` its last events (keys: `fleet.adapters.redis.devices.traces.FIELDS`), `bootstrap` the
    time when it got credentials, `refusal` when bootstrap refused it and why, `turn` the hash of its last turn (ten
    minutes), `edge_lives` whether the edge of its session announces itself.
    """

    mac: str
    record: Mapping[str, str]
    traces: Mapping[str, Trace]
    bootstrap: int | None
    refusal: Trace | None
    admission: Admission
    revoked: bool
    session: Mapping[str, str]
    turn: Mapping[str, str]
    tools: int
    edge_lives: bool

    @property
    def known(self) -> bool:
        return bool(self.record)

    @property
    def last_session(self) -> str:
        return self.record.get("sid") or self.record.get("gone", "")

    def at(self, what: str) -> int:
        """Return the time of an event; 0 without a trace of it."""
        trace = self.traces.get(what)
        return trace.at if trace else 0


async def read_device_view(store: Store, mac: str) -> DeviceView:
    """Return the data of a canonical MAC.

    Raises:
        Unavailable: Redis did not answer.
    """
    names = store.keys
    pipe = store.client.pipeline(transaction=False)
    pipe.hgetall(names.device(mac))
    pipe.hgetall(names.session(mac))
    pipe.hgetall(names.turn(mac))
    pipe.hgetall(admission_key(store, mac))
    pipe.zscore(names.seen(names.shard(mac)), mac)
    record, session, turn, admission, seen = await store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
    away = await TraceStore(store).refusal(mac)
    edges = {edge.id for edge in await Edges(store).live()}
    return DeviceView(
        mac=mac,
        record=record,
        traces={what: trace for what, field in FIELDS.items() if (trace := _trace(record.get(field, "")))},
        bootstrap=int(seen) if seen else None,
        refusal=Trace(*away) if away else None,
        admission=Admission.of(admission),
        revoked=bool(await Revocations(store).which([mac])),
        session=session,
        turn=turn,
        tools=len(await ToolLists(store).read(mac)),
        edge_lives=session.get("edge", "") in edges,
    )


def _trace(text: str) -> Trace | None:
    at, _, words = text.partition(" ")
    return Trace(int(at), words) if at.isdigit() else None
