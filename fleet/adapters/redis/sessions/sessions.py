"""Sessions: from a hello to its goodbye."""

from collections.abc import Awaitable, Iterable, Mapping
from typing import NamedTuple, cast

import msgspec

from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS, INDEX_SECONDS, SESSION_SECONDS, owed_apologies, prefix
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.edge_messages import CloseSessionCommand, EdgeCommand, OpenSessionCommand
from fleet.wire.messages import AudioFormat

_NO_AUDIO = AudioFormat(0, 0)


class SessionRecord(msgspec.Struct, frozen=True):
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
    kept: int = 0
    """When it began, in Unix seconds, if announcements were kept for the device then; else 0."""

    def details(self) -> tuple[str | int, ...]:
        """Return names and values of the fields besides id, dialect and edge."""
        up = f"{self.uplink.sample_rate}/{self.uplink.frame_ms}"
        down = f"{self.downlink.sample_rate}/{self.downlink.frame_ms}"
        return "ssrc", self.ssrc, "key", self.key, "up", up, "down", down, "aec", int(self.aec)

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
            kept=int(record.get("kept", 0)),
        )


class Opened(NamedTuple):
    """The result of opening a session.

    The replaced session (empty strings without one), and whether the tools are known.
    """

    old_session: str
    old_edge: str
    tools_known: bool


class Sessions:
    """Reads and writes sessions.

    A change of a session sends its edge a message in the same round trip; in a Redis Cluster, in a second one.
    """

    def __init__(self, store: Store, inboxes: Inboxes | None = None) -> None:
        self._store = store
        self._inboxes = inboxes or Inboxes(store)

    async def open(self, owner: Owner, session: SessionRecord, command: OpenSessionCommand | None = None) -> Opened:
        """Make this the device's session, in place of any other.

        Args:
            owner: Of the device's shard.
            session: The session.
            command: For its edge; gets what the device reported about itself.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys, mac, shard = self._store.keys, session.device, self._store.keys.shard(session.device)
        post = self._inboxes.post(command)
        old_session, old_edge, epoch, tools_epoch, *reported = await self._store.call(
            "fleet_hello",
            [
                *(keys.own(shard), keys.session(mac), keys.device(mac), keys.tools(mac), keys.session_edges(shard)),
                *(admission_key(self._store, mac), keys.agents(shard)),
            ],
            [
                *(owner.worker, owner.fence, SESSION_SECONDS, DEVICE_SECONDS, INDEX_SECONDS, prefix(shard), mac),
                *(session.edge, *post, session.dialect, session.id, *session.details()),
            ],
        )
        if command is not None and not post[0]:
            facts = dict(zip(("firmware", "reported_language", "board", "agent"), reported, strict=True))
            await self._inboxes.to_edge(session.edge, msgspec.structs.replace(command, **facts))
        return Opened(old_session, old_edge, bool(tools_epoch) and tools_epoch == epoch)

    async def forward(self, owner: Owner, mac: str, command: EdgeCommand) -> str:
        """Send the edge of a session a message, if this is the current session of the device.

        Returns:
            The edge; an empty string if the session is not the current one, or in a Redis Cluster: then nothing was
            sent.

        Raises:
            Fenced: The shard is another worker's now.
        """
        post = self._inboxes.post(command)
        if not post[0]:
            return ""
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        (edge,) = await self._store.call(
            "fleet_forward",
            [keys.own(shard), keys.session(mac)],
            [owner.worker, owner.fence, command.session, *post],
        )
        return edge

    async def read(self, mac: str) -> SessionRecord | None:
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.session(mac)))
        )
        return SessionRecord.of(mac, record) if record else None

    async def close(
        self, owner: Owner, mac: str, session: str, reason: str = "", *, goodbye_sent: bool = False, apology: str = ""
    ) -> str:
        """End a session if it is the device's current one, also on its edge.

        Args:
            owner: Of the device's shard.
            mac: The device.
            session: Its id.
            reason: For the device's trace (`fleet.adapters.redis.devices.traces`).
            goodbye_sent: Whether a goodbye was sent to the device.
            apology: Name of the phrase to show when the device is connected and idle; empty for none. See
                `fleet.adapters.redis.sessions.endings`.

        Returns:
            The session's edge, or an empty string if it was not the current session.
        """
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        command = CloseSessionCommand(device=mac, session=session)
        post = self._inboxes.post(command)
        (edge,) = await self._store.call(
            "fleet_goodbye",
            [
                *(keys.own(shard), keys.session(mac), keys.device(mac)),
                *(keys.conversations(shard), keys.conversation(mac), owed_apologies(shard)),
            ],
            [owner.worker, owner.fence, session, prefix(shard), mac, reason, int(goodbye_sent), apology, *post],
        )
        if edge and not post[0]:
            await self._inboxes.to_edge(edge, command)
        return edge

    async def of_dead_edges(self, owner: Owner, shard: int, live: Iterable[str], most: int) -> list[tuple[str, str]]:
        """Return device and session of some of a shard's sessions whose edge is not alive.

        An empty session stands for a device to which an apology is due.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        found = await self._store.call(
            "fleet_orphans",
            [keys.own(shard), keys.session_edges(shard), owed_apologies(shard)],
            [owner.worker, owner.fence, prefix(shard), most, *live],
        )
        return list(zip(found[::2], found[1::2], strict=True))

    async def keep(self, mac: str) -> None:
        """Prolong the session to its full life."""
        await self._store.ask(self._store.client.expire(self._store.keys.session(mac), SESSION_SECONDS))


def _format(text: str) -> AudioFormat:
    rate, _, frame = text.partition("/")
    return AudioFormat(int(rate), int(frame))
