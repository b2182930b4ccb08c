"""Who owns each MAC: the Client-Id that is given its password, and which generation of passwords counts.

Every decision and every change is one function (`functions.lua`), so of several that race one wins, and the others are
judged by what it left. A record that is changed by an operator is kept until the operator changes it again; that of a
MAC which never connected lives an hour (docs/adr/0017-whose-device.md).
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS, prefix
from fleet.core.admission import PinMethod, Policy, Verdict

YOUNG_SECONDS = 3600
"""How long a MAC that never connected is known after it was served last, and its owner pinned."""
MOST_YOUNG = 20_000
"""MACs that never connected, over all shards. Each keeps its hour: when all places are taken, no other MAC gets one.
One takes about 900 bytes."""
SHARE = 10
"""One address (IPv6: its /64) has at most this part of the places."""
CLAIMS_EACH = 16
"""Claims of one MAC that are kept."""
CLAIMS_OF_SOURCE = 2
"""Of them those of one address (IPv6: its /64): newer ones replace its own, so that it hides nobody else's."""
CLAIM_SECONDS = 7 * 24 * 3600
REFUSED_SECONDS = 30 * 24 * 3600
"""How long a Client-Id whose claim was refused gets no answer but a refusal."""

_LONGEST_ADDRESS = 64

Change = Literal["bind", "unbind", "raise"]


@dataclass(frozen=True, slots=True)
class Admission:
    """A device's standing. `client` is the Client-Id of its owner, empty until one shows itself.

    Times are seconds since 1970, 0 for none.
    """

    bound: bool = False
    client: str = ""
    serial: str = ""
    timezone: str = ""
    """An IANA name or minutes east of UTC; the server's own without it."""
    how: PinMethod | Literal[""] = ""
    unbound: bool = False
    """Whether an operator took its admission away: it has to be activated again."""
    generation: int = 0
    """Of the password that it is given now; 0 for a record of a version before generations."""
    due: int = 0
    """Until when earlier generations count, 0 where none waits."""
    others: int = 0
    """How often somebody else asked with its MAC."""
    last_other: int = 0

    @classmethod
    def of(cls, record: Mapping[str, str]) -> "Admission":
        bound, client = bool(record.get("bound")), record.get("client", "")
        how = record.get("how", "") or ("code" if client else "mac")
        return cls(
            bound=bound,
            client=client,
            serial=record.get("serial", ""),
            timezone=record.get("tz", ""),
            how=cast("PinMethod", how) if bound else "",
            unbound=bool(record.get("unbound")),
            generation=int(record.get("gen", "0")),
            due=int(record.get("due", "0")),
            others=int(record.get("others", "0")),
            last_other=int(record.get("otherat", "0")),
        )

    @property
    def wanted(self) -> int:
        """The generation that its password should have under any policy but `open`."""
        return max(self.generation, 1)


@dataclass(frozen=True, slots=True)
class BootstrapAsker:
    """Who asks bootstrap: what its request said, and what is written down of it if it is served."""

    mac: str
    client: str
    address: str = ""
    provable: bool = False
    """Whether it can prove itself with a burnt-in key that the operator knows."""
    dialect: str = ""
    """How it speaks as far as bootstrap tells; kept until its messages tell more."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about an asker.

    `generation` is that of the password that it may be given, `claims` whether it stands among the claims of the MAC,
    `evicted` how many that never connected gave way, under an open policy.
    """

    verdict: Verdict
    generation: int
    timezone: str
    claims: bool = False
    evicted: int = 0


class Admissions:
    """Decides about askers, and changes standings. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def decide(self, policy: Policy, who: BootstrapAsker, fields: Mapping[str, str]) -> Decision:
        """Decide about an asker, pin it where it is the first, and write down what it says of itself if it is served.

        Args:
            policy: The operator's.
            who: Asks. Under every policy but `open` its Client-Id must not be empty.
            fields: Of the device's record.
        """
        names, shard = self._store.keys, self._store.keys.shard(who.mac)
        keys = [
            admission_key(self._store, who.mac),
            names.device(who.mac),
            names.seen(shard),
            names.young(shard),
            names.claims(who.mac),
            names.refused(who.mac, who.client),
        ]
        most = most_young(names.shards)
        limits: list[str | int] = [
            *(most, max(1, most // SHARE), YOUNG_SECONDS, DEVICE_SECONDS),
            *(CLAIMS_EACH, CLAIMS_OF_SOURCE, CLAIM_SECONDS),
        ]
        words: list[str | int] = [
            policy,
            who.client,
            who.mac,
            who.address[:_LONGEST_ADDRESS],
            int(who.provable),
            _now(),
            prefix(shard),
        ]
        pairs = [text for pair in fields.items() for text in pair]
        verdict, generation, timezone, claims, evicted = await self._store.call(
            "fleet_boot", keys, [*words, *limits, who.dialect, *pairs]
        )
        return Decision(cast("Verdict", verdict), int(generation), timezone, claims == "1", int(evicted))

    async def read(self, mac: str) -> Admission:
        record = self._store.client.hgetall(admission_key(self._store, mac))
        return Admission.of(await self._store.ask(cast("Awaitable[dict[str, str]]", record)))

    async def read_many(self, macs: list[str]) -> list[Admission]:
        pipe = self._store.client.pipeline(transaction=False)
        for mac in macs:
            pipe.hgetall(admission_key(self._store, mac))
        records = await self._store.ask(cast("Awaitable[list[dict[str, str]]]", pipe.execute())) if macs else []
        return [Admission.of(record) for record in records]

    async def bind(
        self, mac: str, client: str = "", serial: str = "", *, how: PinMethod | None = None, until: int = 0
    ) -> int | None:
        """Make a Client-Id the owner of a MAC; without one it is the first that shows itself.

        Args:
            mac: Canonical.
            client: The owner.
            serial: Its burnt-in serial number, if it has one.
            how: How it became the owner.
            until: When passwords of an earlier owner count no longer, in seconds since 1970; 0: now.

        Returns:
            The generation below which passwords of this MAC should count no longer, None where no other had it.
        """
        raised, generation = await self._change(
            mac, "bind", until, client, serial, how or ("code" if client else "mac")
        )
        return generation if raised else None

    async def unbind(self, mac: str) -> tuple[bool, int]:
        """Take a device's admission away, and remember it; return whether it had one, and the generation to require."""
        had, generation = await self._change(mac, "unbind", 0)
        return had, generation

    async def renew(self, mac: str, until: int = 0) -> int:
        """Want another password of a device, which counts alone from a time on; return its generation."""
        _, generation = await self._change(mac, "raise", until)
        return generation

    async def set_timezone(self, mac: str, timezone: str) -> None:
        """Set a device's time zone; an empty one is the server's."""
        key = admission_key(self._store, mac)
        pipe = self._store.client.pipeline(transaction=False)
        if timezone:
            pipe.hset(key, "tz", timezone)
        else:
            pipe.hdel(key, "tz")
        pipe.persist(key)
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))

    async def _change(self, mac: str, what: Change, until: int, *words: str) -> tuple[bool, int]:
        names, shard = self._store.keys, self._store.keys.shard(mac)
        keys = [
            admission_key(self._store, mac),
            names.device(mac),
            names.young(shard),
            names.old(shard),
            names.due(shard),
            names.claims(mac),
        ]
        client, serial, how = words or ("", "", "")
        changed, generation = await self._store.call("fleet_own", keys, [what, mac, _now(), until, client, serial, how])
        return changed == "1", int(generation)


def most_young(shards: int) -> int:
    """Return how many MACs of one shard may be known that never connected."""
    return max(1, MOST_YOUNG // shards)


def admission_key(store: Store, mac: str) -> str:
    return f"{prefix(store.keys.shard(mac))}o:{mac}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
