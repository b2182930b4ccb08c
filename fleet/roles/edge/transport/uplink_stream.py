"""Which datagrams of a session are used, and where the device is.

Nothing in a packet proves that it was sealed under the key. What SECURITY.md promises for audio rests on these rules:

- A packet from the device's address is used at once while the stream is live, its number is the next one in time
  (`fleet.roles.edge.transport.track`), and its first byte is the one that this encoder writes.
- Everything else (another address, a gap, a microphone that opens again, another first byte) waits for a chain of good
  packets (`fleet.roles.edge.transport.proof`). It is used when the chain is proved: no packet of the device is lost.
- No number is used twice, and none is ahead of the clock (`fleet.roles.edge.transport.allowance`).

The first of these rules is in the native part of the socket too, where there is one, as nearly every packet meets it
(`usual_take` in stream.c).
"""

from collections import Counter
from typing import Final

from fleet.roles.edge.transport.allowance import Allowance
from fleet.roles.edge.transport.chain import GoodPacket, Packets, Proof
from fleet.roles.edge.transport.datagrams import Address, Expected, NativeChannel, PlainChannel
from fleet.roles.edge.transport.former_address import FormerAddress
from fleet.roles.edge.transport.proof import COMPARED, Candidates
from fleet.roles.edge.transport.sequential_test import live_test
from fleet.roles.edge.transport.track import LIVE_SECONDS, Track
from fleet.wire import toc
from fleet.wire.messages import AudioFormat
from fleet.wire.packet import Header
from fleet.wire.replay import UsedNumbers

BEHIND: Final = 8
"""Numbers behind the newest from which a chain of another address may still begin. Older ones are packets that were
lost: who has seen them could send them at any time."""
MOVE_SECONDS: Final = 0.15
"""Shortest chain that moves the address: a copy of a burst arrives in less time."""
PINNED_RATE: Final = 16_000
"""Hz: at this rate firmware's encoder (AS_OPUS_ENC_CONFIG in audio_service.h) always writes one TOC, in silence too."""
SILENCE: Final = b""
"""What `admit` returns for a packet that claims no number and stands for a silent frame."""


class UplinkStream:
    """Opens the packets of one session.

    Args:
        channel: Of the session.
        uplink: What the device announced.
        drops: Counts dropped packets by reason.
        now: When the session began.
    """

    __slots__ = (
        "_allowance",
        "_candidates",
        "_channel",
        "_drops",
        "_former",
        "_frame_ms",
        "_native",
        "_toc",
        "_track",
        "_used",
        "address",
        "proved",
    )

    def __init__(
        self, channel: PlainChannel | NativeChannel, uplink: AudioFormat, drops: Counter[str], now: float
    ) -> None:
        self._channel = channel
        self._native = None if isinstance(channel, PlainChannel) else channel
        self._frame_ms = uplink.frame_ms
        self._drops = drops
        self._allowance = Allowance(uplink.frame_ms, now)
        self._used = UsedNumbers()
        pinned = uplink.sample_rate == PINNED_RATE
        self._track = Track(uplink.frame_ms, live_test(uplink.frame_ms, pinned=pinned))
        self._candidates = Candidates(uplink.frame_ms, drops, pinned=pinned)
        self._toc: int | None = None
        self._former = FormerAddress()
        self.address: Address | None = None
        """Where the device sends from; None until it has proved that."""
        self.proved: Packets = []
        """Numbers and payloads that the packet admitted last has proved; they come before it. The user empties it."""

    @property
    def newest(self) -> int:
        """The sequence number that the device has reached: how many packets it has sent."""
        self._follow_native()
        return self._track.newest

    def admit(self, header: Header, datagram: bytes, address: Address, now: float) -> bytes | None:
        """Return the Opus packet of a datagram, `SILENCE`, or None when it is not used, or not yet."""
        self._follow_native()
        payload = self._admit(header, datagram, address, now)
        # Also after a packet that is not used: one may move the stream back to its former address.
        self._update_native()
        return payload

    def _admit(self, header: Header, datagram: bytes, address: Address, now: float) -> bytes | None:
        sequence = header.sequence
        if header.flags:
            # The nonce's flags are 0; with others it may be a packet of ours that somebody sent back.
            self._drops["flags"] += 1
            return None
        used = self._used
        if sequence <= used.newest and sequence in used:
            self._repeat(sequence, datagram, address, now)
            return None
        if reason := self._allowance.refuse(sequence, now):
            self._drops[reason] += 1
            return None
        payload = self._channel.open(datagram)
        if toc.duration_ms(payload) != self._frame_ms:
            return self._refuse(payload, address, now)
        usual = address == self.address and (self._toc is None or payload[0] == self._toc)
        if usual and self._track.take(sequence, now):
            used.add(sequence)
            self._allowance.pace.add(now)
            return payload
        return self._wait(GoodPacket(address, sequence, payload), now)

    @property
    def expected(self) -> Expected | None:
        """What the next packet looks like that the native part may admit; None if every packet needs `admit`."""
        track, allowance = self._track, self._allowance
        if self.address is None or self._toc is None or track.newest != self._used.newest:
            return None
        return Expected(
            address=self.address,
            first=self._toc,
            newest=track.newest,
            last=track.last,
            last_but_one=track.last_but_one,
            live_seconds=LIVE_SECONDS,
            pace=track.pace.terms,
            allowance=allowance.pace.terms,
            highest=allowance.highest,
        )

    def _follow_native(self) -> None:
        """Count what the native part of the socket, if there is one, has admitted meanwhile."""
        if self._native and (progress := self._native.progress()):
            newest, last, last_but_one, due, allowed = progress
            self._track.follow(newest, last, last_but_one, due)
            self._used.extend(newest)
            self._allowance.pace.due = allowed

    def _update_native(self) -> None:
        """Say which packets the native part of the socket, if there is one, admits itself."""
        if self._native is None:
            return
        if expected := self.expected:
            self._native.expect(expected)
        else:
            self._native.stop()

    def _wait(self, packet: GoodPacket, now: float) -> bytes | None:
        """Keep a good packet until a chain proves it; return its payload if it does so itself."""
        if packet.sequence <= self._track.floor(now) - BEHIND:
            self._drops["late"] += 1
            return None
        proof = self._candidates.offer(packet, now, self._track.taken)
        return self._follow(proof, now) if proof and self._believe(proof, now) else None

    def _refuse(self, payload: bytes, address: Address, now: float) -> bytes | None:
        """Handle a payload that is no audio of this device."""
        self._candidates.spoil(address)
        if address == self.address:
            self._track.spoil()
        silent = address == self.address and len(payload) < toc.SHORTEST_AUDIO
        if silent and self._track.pause(now, self._frame_ms / 1000):
            # It shows no sign of the key, so it takes no number. The gap that it leaves is filled like a lost packet's.
            return SILENCE
        self._drops["not_audio"] += 1
        return None

    def _believe(self, proof: Proof, now: float) -> bool:
        """Return whether a proved chain is the device and no copy of what the device sends at the same time."""
        address = proof.last.address
        at_home = address == self.address
        # Another TOC at the device's address may be that of copies under its former name. The usual one is the
        # device's, even if copies of its packets come first: somebody else may have set the TOC.
        if (at_home and proof.toc in (self._toc, self._candidates.usual_toc)) or self._former.is_at(address, now):
            return True
        if self.address and not at_home and now - proof.chain.began < MOVE_SECONDS:
            return False
        since = proof.back(COMPARED - 1)
        return not self._candidates.is_copied(proof, 0 if at_home else self._track.taken - since.admitted)

    def _follow(self, proof: Proof, now: float) -> bytes:
        """Go on where a chain is; return the payload of its last packet."""
        candidates, address = self._candidates, proof.last.address
        packets = candidates.take(proof)
        if self._former.is_at(address, now):
            self._former.forget()
        elif self.address not in (None, address):
            self._former.leave(self.address, self._track.newest, now)
        self._move(address)
        self._toc = candidates.toc = proof.toc
        packets = [one for one in packets if one[0] not in self._used]
        for sequence, _ in packets:
            self._used.add(sequence)
        self._allowance.pace.add(now, len(packets))
        self._track.begin(packets[-1][0], len(packets), now)
        self.proved = packets[:-1]
        return packets[-1][1]

    def _repeat(self, sequence: int, datagram: bytes, address: Address, now: float) -> None:
        """Handle a number that was used: the former address may go on sending what the new one copies."""
        self._drops["replay"] += 1
        if address == self.address and sequence > self._track.reached:
            # A guess may have used it: the guesses for the same number go on.
            self._track.spoil()
        # Where only the length counts, guesses would be good too often to undo a move.
        if self._toc is None or not self._former.is_at(address, now):
            return
        payload = self._channel.open(datagram)
        good = toc.duration_ms(payload) == self._frame_ms and payload[0] == self._toc
        if self._former.goes_on(sequence, now, good=good):
            self._move(address)

    def _move(self, address: Address) -> None:
        self._channel.move(address)
        self.address = self._candidates.home = address
