"""The owner of each MAC: the Client-Id that gets its password, and the lowest valid generation of passwords.

Every decision and every change is one function (`functions.lua`), so concurrent requests are decided one after the
other. A record that an operator changed is kept until the next change by an operator. The record of a MAC that never
connected expires after an hour (docs/adr/0017-whose-device.md).
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS, prefix
from fleet.core.admission import PinMethod, Policy, Verdict
from fleet.wire.firmware_offer import OFFERS, FirmwareOffer

YOUNG_SECONDS = 3600
"""Seconds that a MAC which never connected, and its pin, are kept after its last served bootstrap."""
MOST_YOUNG = 20_000
"""MACs that never connected, over all shards. When all places are taken, a new MAC waits until one expires. A MAC takes
about 900 bytes."""
SHARE = 10
"""One address (IPv6: its /64) has at most this part of the places."""
CLAIMS_EACH = 16
"""Claims of one MAC that are kept."""
CLAIMS_OF_SOURCE = 2
"""Claims of one MAC from one address (IPv6: its /64). Newer ones replace its own, so that it cannot displace others."""
CLAIM_SECONDS = 7 * 24 * 3600
REFUSED_SECONDS = 30 * 24 * 3600
"""Seconds that a Client-Id with a refused claim is refused."""

_LONGEST_ADDRESS = 64

Change = Literal["bind", "unbind", "raise"]


@dataclass(frozen=True, slots=True)
class Admission:
    """A device's admission. `client` is the Client-Id of its owner, empty until the first one asks.

    Times are seconds since 1970, 0 for none.
    """

    bound: bool = False
    client: str = ""
    serial: str = ""
    timezone: str = ""
    """An IANA name or minutes east of UTC; the server's own without it."""
    how: PinMethod | Literal[""] = ""
    unbound: bool = False
    """Whether an operator removed its admission: it has to be activated again."""
    generation: int = 0
    """Generation of the password that it gets now; 0 in a record from a version without generations."""
    due: int = 0
    """Until when earlier generations are valid; 0 if no change is pending."""
    others: int = 0
    """How often another client asked with its MAC."""
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
        """The generation that its password should have under every policy but `open`."""
        return max(self.generation, 1)


@dataclass(frozen=True, slots=True)
class BootstrapAsker:
    """A client that asks bootstrap: the data of its request that is stored if it is served."""

    mac: str
    client: str
    address: str = ""
    provable: bool = False
    """Whether it can prove itself with a burnt-in key that the operator knows."""
    dialect: str = ""
    """Its dialect as far as the request shows it; kept until its messages show more."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a client.

    `generation` is that of the password that it may get, `claims` whether it is among the claims of the MAC, `evicted`
    how many MACs that never connected were removed for it (only under an open policy). `offer` is the firmware that
    its device is to install.
    """

    verdict: Verdict
    generation: int
    timezone: str
    claims: bool = False
    evicted: int = 0
    offer: FirmwareOffer | None = None


class Admissions:
    """Decides about clients, and changes admissions. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def decide(self, policy: Policy, who: BootstrapAsker, fields: Mapping[str, str]) -> Decision:
        """Decide about a client; pin it if it is the first; store its fields if it is served.

        Args:
            policy: The operator's.
            who: The client. Under every policy but `open` its Client-Id must not be empty.
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
        verdict, generation, timezone, claims, evicted, offer = await self._store.call(
            "fleet_boot", keys, [*words, *limits, who.dialect, *pairs]
        )
        return Decision(
            *(cast("Verdict", verdict), int(generation), timezone, claims == "1", int(evicted)),
            OFFERS.decode(offer) if offer else None,
        )

    async def read(self, mac: str) -> Admission:
        record = self._store.client.hgetall(admission_key(self._store, mac))
        return Admission.of(await self._store.ask(cast("Awaitable[dict[str, str]]", record)))

    async def read_many(self, macs: list[str]) -> list[Admission]:
        pipe = self._store.client.pipeline(transaction=False)
        for mac in macs:
            pipe.hgetall(admission_key(self._store, mac))
        records = await self._store.ask(cast("Awaitable[list[dict[str, str]]]", pipe.execute())) if macs else []
        return [Admission.of(record) for record in records]

    async def all(self) -> dict[str, Admission]:
        """Return the admission of each MAC that has one; for commands of operators, because it reads all key names."""
        mark = ":o:"
        macs = [name.partition(mark)[2] for name in await self._store.scan(f"f:{{*}}{mark}*")]
        return dict(zip(macs, await self.read_many(macs), strict=True))

    async def bind(
        self, mac: str, client: str = "", serial: str = "", *, how: PinMethod | None = None, until: int = 0
    ) -> int | None:
        """Make a Client-Id the owner of a MAC; without one the first Client-Id that asks becomes the owner.

        Args:
            mac: Canonical.
            client: The owner.
            serial: Its burnt-in serial number, if it has one.
            how: How it became the owner.
            until: When passwords of an earlier owner become invalid, in seconds since 1970; 0: now.

        Returns:
            The lowest generation of this MAC's passwords to accept; None if no other client had a password.
        """
        raised, generation = await self._change(
            mac, "bind", until, client, serial, how or ("code" if client else "mac")
        )
        return generation if raised else None

    async def unbind(self, mac: str) -> tuple[bool, int]:
        """Remove a device's admission and record that; return whether it had one, and the generation to require."""
        had, generation = await self._change(mac, "unbind", 0)
        return had, generation

    async def renew(self, mac: str, until: int = 0) -> int:
        """Require a new password of a device; earlier ones become invalid at `until`. Return its generation."""
        _, generation = await self._change(mac, "raise", until)
        return generation

    async def set_timezone(self, mac: str, timezone: str) -> None:
        """Set a device's time zone; an empty one means the server's."""
        key = admission_key(self._store, mac)
        pipe = self._store.client.pipeline(transaction=False)
        if timezone:
            pipe.hset(key, "tz", timezone)
        else:
            pipe.hdel(key, "tz")
        pipe.persist(key)
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        await Reminders(self._store).look_again(mac)

    async def _change(self, mac: str, what: Change, until: int, *words: str) -> tuple[bool, int]:
        names, shard = self._store.keys, self._store.keys.shard(mac)
        keys = [
            admission_key(self._store, mac),
            names.device(mac),
            names.young(shard),
            names.old(shard),
            names.due(shard),
            names.claims(mac),
            names.events(shard),
            *(names.reminders(mac), names.reminders_due(shard), names.reminders_begun(shard)),
            *(names.memory(mac), names.conversation(mac), names.history(mac)),
        ]
        client, serial, how = words or ("", "", "")
        changed, generation = await self._store.call("fleet_own", keys, [what, mac, _now(), until, client, serial, how])
        return changed == "1", int(generation)


def most_young(shards: int) -> int:
    """Return how many MACs that never connected are kept for one shard."""
    return max(1, MOST_YOUNG // shards)


def admission_key(store: Store, mac: str) -> str:
    return f"{prefix(store.keys.shard(mac))}o:{mac}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
