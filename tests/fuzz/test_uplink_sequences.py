"""Datagrams in any order into one session's stream and order: the rules of the device's contract, section 4.6."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fleet.roles.edge.listening.jitter_buffer import MOST_HELD
from tests.fuzz.audio_targets import AHEAD, AWAY, ELSEWHERE, FASTEST, FRAME_MS, HOME, SSRC, Witness, seal

SPEECH = st.binary(min_size=3, max_size=8).map(lambda rest: b"\x58" + rest)
RUN = 16
"""Packets in a row with which a device is heard after anything that these rules do."""
ADDRESS = st.sampled_from([HOME, HOME, AWAY, ELSEWHERE])


class UplinkSequences(RuleBasedStateMachine):
    """A device, somebody who listens and forges, and a network that repeats, reorders and loses."""

    @initialize()
    def begin(self) -> None:
        self.witness = Witness()
        self.sent: list[bytes] = []
        self.sequence, self.now = 0, 0.0

    def hand_over(self, payload: bytes, sequence: int, address: tuple[str, int]) -> bool:
        datagram = seal(payload, sequence)
        self.sent = [*self.sent, datagram][-50:]
        return self.witness.take(datagram, address, self.now)

    @rule(payload=SPEECH, address=ADDRESS, step=st.sampled_from([1, 1, 1, 2, 4, 60]))
    def speak(self, payload: bytes, address: tuple[str, int], step: int) -> None:
        """Speak for long enough to be heard, wherever the device is by now."""
        self.sequence = self.witness.newest + step
        for _ in range(RUN):
            self.now += 0.06
            admitted = self.hand_over(payload, self.sequence, address)
            self.sequence += 1
        in_time = self.sequence <= AHEAD + self.now * FASTEST * 1000 / FRAME_MS
        assert admitted or not in_time

    @rule(seconds=st.sampled_from([0.0, 0.12, 5.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(which=st.integers(0, 49), address=ADDRESS)
    def repeat(self, which: int, address: tuple[str, int]) -> None:
        if self.sent:
            datagram = self.sent[which % len(self.sent)]
            passed = int.from_bytes(datagram[12:16]) in self.witness.passed
            assert not (self.witness.take(datagram, address, self.now) and passed)

    @rule(payload=SPEECH, back=st.integers(1, 70))
    def come_late(self, payload: bytes, back: int) -> None:
        sequence = max(0, self.witness.newest - back)
        self.now += 0.06
        admitted = self.hand_over(payload, sequence, HOME)
        assert not (admitted and sequence == 0)

    @rule(payload=SPEECH, beyond=st.sampled_from([1, 2, 10_000, 2**31]))
    def jump(self, payload: bytes, beyond: int) -> None:
        """No number ahead of the clock counts, whatever came before."""
        far = min(int(AHEAD + self.now * FASTEST * 1000 / FRAME_MS) + beyond, 2**32 - 1)
        assert not self.hand_over(payload, far, HOME)

    @rule(size=st.integers(0, 3))
    def be_silent(self, size: int) -> None:
        self.now += 0.06
        assert not self.hand_over(b"\x00" * size, self.witness.newest + 1, HOME)

    @rule(payload=SPEECH)
    def send_back_the_downlink(self, payload: bytes) -> None:
        assert not self.witness.take(seal(payload, self.witness.newest + 1, flags=0x80), HOME, self.now)

    @rule(noise=st.binary(max_size=40), address=ADDRESS)
    def make_noise(self, noise: bytes, address: tuple[str, int]) -> None:
        header = b"\x01\x00" + len(noise).to_bytes(2) + SSRC.to_bytes(4) + bytes(4)
        self.witness.take(header + (self.witness.newest + 1).to_bytes(4) + noise, address, self.now)
        self.witness.take(noise, address, self.now)

    @invariant()
    def little_is_held(self) -> None:
        if hasattr(self, "witness"):
            assert len(self.witness.order._held) <= MOST_HELD

    def teardown(self) -> None:
        if hasattr(self, "witness"):
            self.witness.finish()


UplinkSequences.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestUplinkSequences = UplinkSequences.TestCase
