"""Sessions: from a hello to its goodbye."""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS, INDEX_SECONDS, SESSION_SECONDS, prefix
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.messages import AudioFormat

_NO_AUDIO = AudioFormat(0, 0)


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session's record.

    `key` is 32 hex digits; `ssrc` routes its audio. A turn that began as text may have no session: then all fields but
    the device and its dialect are empty, and the answer is not spoken.
    """

    id: str
    device: str
    dialect: str
    edge: str
    ssrc: int
    key: str
    uplink: AudioFormat
    downlink: AudioFormat
    aec: bool = False

    def fields(self) -> dict[str, str]:
        return {
            "id": self.id,
            "dialect": self.dialect,
            "edge": self.edge,
            "ssrc": str(self.ssrc),
            "key": self.key,
            "up": f"{self.uplink.sample_rate}/{self.uplink.frame_ms}",
            "down": f"{self.downlink.sample_rate}/{self.downlink.frame_ms}",
            "aec": str(int(self.aec)),
        }

    @classmethod
    def of(cls, mac: str, record: Mapping[str, str]) -> "SessionRecord":
        if "id" not in record:
            return cls("", mac, record.get("dialect", ""), "", 0, "", _NO_AUDIO, _NO_AUDIO)
        return cls(
            id=record["id"],
            device=mac,
            dialect=record["dialect"],
            edge=record["edge"],
            ssrc=int(record["ssrc"]),
            key=record["key"],
            uplink=_format(record["up"]),
            downlink=_format(record["down"]),
            aec=record["aec"] == "1",
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """The result of opening a session.

    The replaced session (empty strings without one), whether the tools are known, and the firmware version, language
    and board that the device reported (empty if unknown).
    """

    old_session: str
    old_edge: str
    tools_known: bool
    firmware: str = ""
    language: str = ""
    board: str = ""


class Sessions:
    """Reads and writes sessions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self, owner: Owner, session: SessionRecord) -> Opened:
        """Make this the device's session, in place of any other.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys, mac, shard = self._store.keys, session.device, self._store.keys.shard(session.device)
        device = {"sid": session.id, "dialect": session.dialect}
        old_session, old_edge, epoch, tools_epoch, *reported = await self._store.call(
            "fleet_hello",
            [keys.own(shard), keys.session(mac), keys.device(mac), keys.tools(mac), keys.session_edges(shard)],
            [
                *(owner.worker, owner.fence, SESSION_SECONDS, DEVICE_SECONDS, INDEX_SECONDS),
                *(prefix(shard), mac, session.edge),
                *(2 * len(device), *_flat(device), *_flat(session.fields())),
            ],
        )
        return Opened(old_session, old_edge, bool(tools_epoch) and tools_epoch == epoch, *reported)

    async def read(self, mac: str) -> SessionRecord | None:
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.session(mac)))
        )
        return SessionRecord.of(mac, record) if record else None

    async def close(
        self, owner: Owner, mac: str, session: str, reason: str = "", *, goodbye_sent: bool = False, apology: str = ""
    ) -> str:
        """End a session if it is the device's current one; return its edge, or an empty string if it was not.

        Args:
            owner: Of the device's shard.
            mac: The device.
            session: Its id.
            reason: For the device's trace (`fleet.adapters.redis.devices.traces`).
            goodbye_sent: Whether a goodbye was sent to the device.
            apology: Name of the phrase to show when the device is connected and idle; empty for none. See
                `fleet.adapters.redis.sessions.endings`.
        """
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        (edge,) = await self._store.call(
            "fleet_goodbye",
            [keys.own(shard), keys.session(mac), keys.device(mac)],
            [owner.worker, owner.fence, session, prefix(shard), mac, reason, int(goodbye_sent), apology],
        )
        return edge

    async def of_dead_edges(self, owner: Owner, shard: int, live: Iterable[str], most: int) -> list[tuple[str, str]]:
        """Return device and session of some of a shard's sessions whose edge is not alive.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        found = await self._store.call(
            "fleet_orphans",
            [keys.own(shard), keys.session_edges(shard)],
            [owner.worker, owner.fence, prefix(shard), most, *live],
        )
        return list(zip(found[::2], found[1::2], strict=True))

    async def keep(self, mac: str) -> None:
        """Prolong the session to its full life."""
        await self._store.ask(self._store.client.expire(self._store.keys.session(mac), SESSION_SECONDS))


def _format(text: str) -> AudioFormat:
    rate, _, frame = text.partition("/")
    return AudioFormat(int(rate), int(frame))


def _flat(fields: Mapping[str, str]) -> list[str | int]:
    return [part for pair in fields.items() for part in pair]
