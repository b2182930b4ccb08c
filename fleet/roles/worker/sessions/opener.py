"""Open and end sessions."""

import asyncio
import logging
import secrets
from collections import Counter
from typing import Literal

from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.sessions.sessions import Opened, SessionRecord
from fleet.adapters.redis.shards.edges import EdgeRecord
from fleet.core.rates import Buckets, Rate
from fleet.core.text.phrases import HelloRefusal
from fleet.ground.errors import Unavailable
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.apologies import PAUSE_SECONDS, Apologies
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.wire import packet
from fleet.wire.edge_messages import CloseSessionCommand, OpenSessionCommand
from fleet.wire.messages import AnswerStopCommand, AudioFormat, GoodbyeCommand, HelloCommand, HelloEvent

log = logging.getLogger(__name__)

DOWNLINK = AudioFormat(24_000, 60)
"""The audio format for devices: py-xiaozhi plays no other, and server-side echo cancellation needs 60 ms."""

LeaveReason = Literal["device", "absent"]
"""How a device left its session: it sent a goodbye or a new hello (`device`), or it is offline (`absent`)."""

_REFUSALS = Rate(0.2, 3)
"""Rate of refusals to one device that says hello too often; each costs three messages."""


class SessionOpener:
    """Answers hellos and says goodbye.

    Args:
        resources: Of the worker.
        directory: The live edges.
        counts: Count refusals.
    """

    def __init__(self, resources: WorkerResources, directory: EdgeDirectory, counts: Counter[str]) -> None:
        self._resources = resources
        self._directory = directory
        self._counts = counts
        self._traces = TraceStore(resources.store)
        self.apologies = Apologies(resources.store, resources.settings)
        """Apologies that are still to be shown."""
        self._refused = frozenset(resources.settings.refused_devices.split(","))
        self._hellos = Buckets(Rate.parse(resources.settings.rate_hellos))
        self._refusals = Buckets(_REFUSALS)

    async def answer_hello(self, shard: Shard, mac: str, hello: HelloEvent, dialect: str) -> Opened | None:
        """Open a session in this dialect in place of an earlier one; return None if the hello was refused.

        Every hello gets a fresh key: the device restarts its sequence numbers (contract 3.2), and the same key would
        reuse keystream.
        """
        now = asyncio.get_running_loop().time()
        if self._hellos.take(mac, now):
            await self._limit_hellos(shard, mac, dialect, now)
            return None
        if mac in self._refused:
            self._refuse(shard, mac, dialect, "the device is not admitted", "refused")
            await self._close_old(shard, mac)
            return None
        try:
            edge = self._directory.pick() or await self._directory.choose()
            if edge is None:
                self._refuse(shard, mac, dialect, "no edge is ready", "unavailable")
                await self._close_old(shard, mac)
                return None
            return await self._open(shard, hello, _new_session(mac, edge, hello, dialect), edge)
        except Unavailable as error:
            self._refuse(shard, mac, dialect, str(error), "unavailable")
            return None

    async def _limit_hellos(self, shard: Shard, mac: str, dialect: str, now: float) -> None:
        """Refuse a device that says hello too often. Stock firmware never does; after a few refusals ignore it."""
        self._counts["hello: too often"] += 1
        if not self._refusals.take(mac, now):
            self._refuse(shard, mac, dialect, "too many hellos", "unavailable")
            await self._close_old(shard, mac)

    async def _open(self, shard: Shard, hello: HelloEvent, session: SessionRecord, edge: EdgeRecord) -> Opened:
        mac = session.device
        host = edge.host or self._resources.settings.public_host or await self._reported_host(mac)
        shard.check()
        # Open the session on the edge before the device gets its hello, so that no packet comes too early.
        opened = await self._resources.sessions.open(shard.owner, session, _announcement(session, shard.number))
        if opened.old_session and opened.old_edge != edge.id:
            old = CloseSessionCommand(device=mac, session=opened.old_session)
            await self._resources.inboxes.to_edge(opened.old_edge, old)
        shard.publish(mac, _hello_command(session, host, edge.port), session.dialect)
        log.info("session opened", extra={"session": session.id, "edge": edge.id, "mcp": hello.mcp})
        return opened

    async def say_goodbye(self, shard: Shard, mac: str, session: str, reason: str) -> bool:
        """End a session with a goodbye; return False if it had ended already."""
        live = await self._resources.sessions.read(mac)
        if live is None or live.id != session:
            return False
        # Publish the goodbye first: a failure after it repeats all steps, and a second goodbye clears no apology yet.
        shard.publish(mac, GoodbyeCommand(session), live.dialect)
        # The user may have begun to speak while the edge ended, and would get no answer.
        apology = "interrupted" if reason == "leaving" else ""
        edge = await self._resources.sessions.close(
            shard.owner, mac, session, reason, goodbye_sent=True, apology=apology
        )
        if apology:
            self.apologies.show_later(shard, mac)
        if edge:
            log.info("session ended by the server", extra={"session": session, "reason": reason})
        return bool(edge)

    async def end_lost(self, shard: Shard, mac: str, session: str, dialect: str) -> bool:
        """End a session whose edge is dead; its device may be in its speaking state, which only `tts stop` ends."""
        # Publish the goodbye first: a failure after it repeats all steps, and a second goodbye clears no apology yet.
        shard.publish(mac, AnswerStopCommand(session), dialect)
        shard.publish(mac, GoodbyeCommand(session), dialect)
        # An utterance may have been lost with the edge.
        edge = await self._resources.sessions.close(
            shard.owner, mac, session, "edge lost", goodbye_sent=True, apology="interrupted"
        )
        self.apologies.show_later(shard, mac)
        if edge:
            log.warning("session lost with its edge", extra={"session": session, "edge": edge})
        return bool(edge)

    async def close(self, shard: Shard, mac: str, session: str, reason: LeaveReason = "device") -> bool:
        """End a session that the device left; send nothing to it. Return False if the session had ended already."""
        edge = await self._resources.sessions.close(shard.owner, mac, session, reason)
        if edge:
            log.info("session ended by the device", extra={"session": session, "reason": reason})
        return bool(edge)

    def is_dead(self, edge: str) -> bool:
        """Return whether an edge is known to be dead."""
        return self._directory.is_gone(edge)

    async def _reported_host(self, mac: str) -> str:
        host = (await self._resources.devices.read(mac)).host
        if not host:
            raise Unavailable("no address for the audio is known")
        return host

    async def _close_old(self, shard: Shard, mac: str) -> None:
        """End the device's earlier session: the device ended it when it sent the refused hello."""
        old = await self._resources.sessions.read(mac)
        if old is not None:
            await self.close(shard, mac, old.id)

    def _refuse(self, shard: Shard, mac: str, dialect: str, reason: str, shown: HelloRefusal) -> None:
        """Answer with a valid hello and a goodbye: without an answer the device would wait ten seconds."""
        self._counts[f"hello: {shown}"] += 1
        log.warning("hello refused", extra={"reason": reason})
        session = secrets.token_hex(8)
        key = secrets.token_hex(packet.HEADER)
        nonce = packet.nonce(secrets.randbits(32)).hex()
        shard.publish(mac, HelloCommand(session, "127.0.0.1", 9, key, nonce, DOWNLINK), dialect)
        shard.publish(mac, GoodbyeCommand(session), dialect)
        shard.spawn(f"alert {mac}", self._show_refusal(shard, mac, dialect, shown))
        shard.spawn(f"trace {mac}", self._traces.note(mac, "refused", reason))

    async def _show_refusal(self, shard: Shard, mac: str, dialect: str, shown: HelloRefusal) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        shard.publish(mac, self.apologies.alert(shown, await self._language(mac)), dialect)

    async def _language(self, mac: str) -> str:
        """Return the language that the device reported; empty while Redis is away."""
        try:
            return (await self._resources.devices.read(mac)).language
        except Unavailable:
            return ""


def _announcement(session: SessionRecord, shard: int) -> OpenSessionCommand:
    return OpenSessionCommand(
        device=session.device,
        session=session.id,
        # The dialect of the hello: a registrar with a microphone opens its sessions in the dialect `xiaozhi`.
        dialect=session.dialect,
        shard=shard,
        ssrc=session.ssrc,
        key=session.key,
        uplink_rate=session.uplink.sample_rate,
        uplink_frame_ms=session.uplink.frame_ms,
        downlink_rate=session.downlink.sample_rate,
        downlink_frame_ms=session.downlink.frame_ms,
        aec=session.aec,
    )


def _new_session(mac: str, edge: EdgeRecord, hello: HelloEvent, dialect: str) -> SessionRecord:
    # Once: each request for random bytes is a system call.
    random = secrets.token_bytes(28)
    return SessionRecord(
        id=random[:8].hex(),
        device=mac,
        dialect=dialect,
        edge=edge.id,
        ssrc=int.from_bytes(random[8:12]),
        key=random[12:].hex(),
        uplink=hello.uplink,
        downlink=DOWNLINK,
        aec=hello.aec,
    )


def _hello_command(session: SessionRecord, host: str, port: int) -> HelloCommand:
    nonce = packet.nonce(session.ssrc).hex()
    return HelloCommand(session.id, host, port, session.key, nonce, session.downlink)
