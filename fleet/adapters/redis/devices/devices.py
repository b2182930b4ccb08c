"""What is known of each device."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS, prefix
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.identity import Username, parse_username


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device's record; empty where nothing is known."""

    mac: str
    online: bool
    board: str
    firmware: str
    host: str
    """The host name or address by which the device reached bootstrap."""
    session: str
    language: str
    tools_known: bool
    """Whether the tool list belongs to the current connection."""
    dialect: str = ""
    """Its last dialect, empty if unknown."""
    connected: Username | None = None
    """The user name of its last connection, None if no broker reported it."""
    epoch: str = ""
    """Of its current connection, empty if unknown."""
    pages: str = ""
    """Digests of the pages of its tool list, separated by spaces; empty if unknown."""
    unfetched: str = ""
    """Notifications that it has not fetched (`fleet.adapters.redis.devices.notify_faults`)."""

    @classmethod
    def of(cls, mac: str, record: Mapping[str, str]) -> "DeviceRecord":
        return cls(
            mac=mac,
            online=record.get("on") == "1",
            board=record.get("board", ""),
            firmware=record.get("fw", ""),
            host=record.get("host", ""),
            session=record.get("sid", ""),
            language=record.get("lang", ""),
            tools_known=bool(record.get("tep")) and record.get("tep") == record.get("ep"),
            dialect=record.get("dialect", ""),
            connected=parse_username(record.get("cu", "")) if record.get("cep") == record.get("ep") else None,
            epoch=record.get("ep", ""),
            pages=record.get("pg", ""),
            unfetched=record.get("nofetch", ""),
        )


@dataclass(frozen=True, slots=True)
class PresenceChange:
    """The result of recording a change of presence.

    Whether it was applied, the live session's id, whether the tools are known, the id of the session that ended last
    (empty if the device itself ended it), the device's dialect (empty if unknown), whether an apology is due
    (`fleet.adapters.redis.sessions.endings`), and of the device's record what discovery reads.
    """

    applied: bool
    session: str
    tools_known: bool
    gone: str
    dialect: str
    apology: bool
    device: DeviceRecord


class Devices:
    """Reads and writes device records."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, mac: str) -> DeviceRecord:
        return await self.known(mac) or DeviceRecord.of(mac, {})

    async def known(self, mac: str) -> DeviceRecord | None:
        """Return a device's record, or None for an unknown device."""
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.device(mac)))
        )
        return DeviceRecord.of(mac, record) if record else None

    async def describe(self, mac: str, fields: Mapping[str, str]) -> None:
        """Store the fields that the device sent to bootstrap."""
        key = self._store.keys.device(mac)
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(key, mapping=cast("Any", fields))
        pipe.expire(key, DEVICE_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def appear(
        self, mac: str, *, online: bool, epoch: int, user: str = "", owner: Owner | None = None
    ) -> PresenceChange:
        """Record that a device connected or disconnected; an older epoch than the known one changes nothing.

        Args:
            mac: The device.
            online: Whether it connected.
            epoch: Of the connection.
            user: The user name with which it connected; empty if the broker does not report it.
            owner: The shard's owner, if a worker records it.

        Raises:
            Fenced: The named owner does not own the shard any more.
        """
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        fence = (owner.worker, owner.fence) if owner else ("", "")
        passwords = [f"{prefix(shard)}o:{mac}", keys.young(shard), keys.old(shard), keys.due(shard)]
        applied, session, tools_epoch, gone, dialect, apology, host, connected, pages = await self._store.call(
            "fleet_presence",
            [keys.device(mac), keys.own(shard), keys.online(shard), *passwords, keys.tools(mac), keys.events(shard)],
            [int(online), epoch, DEVICE_SECONDS, mac, *fence, user],
        )
        read = {"ep": str(epoch), "cep": str(epoch), "host": host, "cu": connected, "pg": pages}
        return PresenceChange(
            applied=applied == "1",
            session=session,
            tools_known=tools_epoch == str(epoch),
            gone=gone,
            dialect=dialect,
            apology=apology == "1",
            device=DeviceRecord.of(mac, read),
        )

    async def outdate(self, owner: Owner, shard: int, epoch: int, most: int) -> list[tuple[str, str]]:
        """Mark some of a shard's devices offline that connected before an epoch; return them and their sessions.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        found = await self._store.call(
            "fleet_outdate",
            [keys.own(shard), keys.online(shard)],
            [owner.worker, owner.fence, epoch, most, prefix(shard)],
        )
        return list(zip(found[::2], found[1::2], strict=True))
