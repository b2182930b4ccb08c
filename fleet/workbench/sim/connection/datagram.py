"""The device's end of the encrypted audio: counters, cipher, and what it accepts (contract 4.1).

Written against the contract alone, not with the server's codec: an error there must not cancel out here.
"""

from typing import Literal

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.workbench.sim.connection.keystream import Keystream
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.profiles.profile import Profile

Refusal = Literal["short", "type", "length", "sequence"]

HEADER = 16


class Cryptor:
    """Counters and cipher of one hello: both counters begin at 0 with it."""

    def __init__(self, hello: ServerHello, profile: Profile) -> None:
        self._key = algorithms.AES(hello.key)
        self._nonce = hello.nonce
        self._profile = profile
        self.sent = 0
        self.last = 0
        self.keystream = Keystream()

    def seal(self, payload: bytes, timestamp: int = 0, sequence: int | None = None) -> tuple[bytes, bool]:
        """Return an uplink datagram, and whether its keystream meets a downlink packet's.

        It has the next sequence number, unless the caller names another one.
        """
        if sequence is None:
            self.sent += 1
            sequence = self.sent
        if self._profile.is_py_xiaozhi:
            timestamp = int.from_bytes(self._nonce[8:12], "big")
        header = b"".join(
            (
                self._nonce[:2],
                len(payload).to_bytes(2, "big"),
                self._nonce[4:8],
                timestamp.to_bytes(4, "big"),
                (sequence & 0xFFFFFFFF).to_bytes(4, "big"),
            )
        )
        meets = self.keystream.send(header, len(payload))
        return header + self.crypt(header, payload), meets

    def refuse(self, datagram: bytes) -> Refusal | None:
        """Return why firmware drops a datagram, or None when it accepts it."""
        if len(datagram) < max(HEADER, self._profile.smallest_datagram):
            return "short"
        if not self._profile.checks_downlink:
            return None
        if datagram[0] != 1:
            return "type"
        if self._profile.exact_length and int.from_bytes(datagram[2:4], "big") != len(datagram) - HEADER:
            return "length"
        sequence = int.from_bytes(datagram[12:16], "big")
        if sequence < self.last or (sequence == self.last and not self._profile.sequence_may_repeat):
            return "sequence"
        return None

    def open(self, datagram: bytes) -> tuple[bytes, int, bool]:
        """Decrypt an accepted datagram.

        Returns:
            The payload, how many sequence numbers were skipped before it, and whether its keystream was used before.
        """
        payload, skipped = self.decrypt(datagram)
        return payload, skipped, self.keystream.receive(datagram[:HEADER], len(payload))

    def decrypt(self, datagram: bytes) -> tuple[bytes, int]:
        """Decrypt an accepted datagram whose keystream is watched elsewhere; else like `open`."""
        header, body = datagram[:HEADER], datagram[HEADER:]
        sequence = int.from_bytes(header[12:], "big")
        skipped = max(0, sequence - self.last - 1)
        self.last = sequence
        return self.crypt(header, body), skipped

    def crypt(self, header: bytes, body: bytes) -> bytes:
        """Encrypt or decrypt with the key of the hello; the header is the initial counter block."""
        context = Cipher(self._key, modes.CTR(header)).encryptor()
        return context.update(body) + context.finalize()


class SocketSlots:
    """The socket's few slots: datagrams that come faster than the receiving task runs are lost.

    Args:
        slots: Datagrams that fit.
        window: Seconds within which the receiving task does not come round.
    """

    def __init__(self, slots: int, window: float = 0.005) -> None:
        self._slots = slots
        self._window = window
        self._arrivals: list[float] = []

    def admit(self, now: float) -> bool:
        """Say whether a datagram that arrives now still fits."""
        self._arrivals = [at for at in self._arrivals if now - at < self._window]
        if len(self._arrivals) >= self._slots:
            return False
        self._arrivals.append(now)
        return True
