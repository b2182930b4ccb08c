"""What is held after much hostile input. Counted, never timed."""

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from fleet.adapters.llm.answer import LARGEST as LARGEST_ANSWER
from fleet.adapters.llm.answer import StreamedAnswer
from fleet.adapters.llm.sse import MAX_LINE, SseReader
from fleet.core.endpointing import LONGEST_MS
from fleet.core.text import sentences
from fleet.core.text.sentences import LONGEST, LONGEST_CODE, SentenceSplitter
from fleet.roles.edge.listening.jitter_buffer import JitterBuffer
from fleet.roles.edge.listening.utterance_collector import BYTES_PER_MS, UtteranceCollector
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.wire import packet
from fleet.wire.mqtt.framing import LARGEST_OF_DEVICE, Splitter
from fleet.wire.mqtt.reader import LARGEST_OF_BROKER, BrokerReader
from tests.fuzz.audio_targets import FRAME_MS, KEY, REASONS, SSRC, UPLINK, make_datagrams, seal
from tests.fuzz.targets import TARGETS
from tests.support.uplink_channel import uplink_channel

PARSERS_CACHE = 4_000_000
"""Bytes: pydantic keeps up to 16,384 short strings that it has read."""


def kept_by(work: Callable[[], object]) -> int:
    """Return how many bytes more are held after the work than before it."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = work()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        del result
        return after - before
    finally:
        tracemalloc.stop()


def flood(count: int) -> object:
    """Return one session's stream and order after so many rounds of hostile datagrams."""
    drops: Counter[str] = Counter()
    stream, order = UplinkStream(uplink_channel(KEY, SSRC), UPLINK, drops, 0.0), JitterBuffer()
    for number in range(count):
        for datagram, address, now in make_datagrams(Random(number)):
            header = packet.parse(datagram)
            payload = header and stream.admit(header, datagram, address, number * 60.0 + now)
            if header and payload:
                order.push(header.sequence, payload, number * 60.0 + now)
    assert set(drops) <= REASONS
    return stream, order


def test_a_session_holds_a_few_packets_whatever_it_is_sent() -> None:
    """At most `proof.MOST_HELD` packets, some 400 bytes each."""
    flood(20)
    assert kept_by(lambda: flood(300)) < 60_000


def overtaken(count: int) -> object:
    """Return a stream after so many packets of its device, each of which copies from other addresses overtook."""
    stream = UplinkStream(uplink_channel(KEY, SSRC), UPLINK, Counter(), 0.0)
    device, others = ("192.0.2.1", 4000), [("192.0.2.2", port) for port in range(16)]
    for number in range(1, count + 1):
        datagram = seal(b"\x58" + bytes(1100), number)
        header = packet.parse(datagram)
        assert header
        for address in [*(others if number > 20 else ()), device]:
            stream.admit(header, datagram, address, number * 0.06)
        stream.proved = []
    assert stream.address == device
    return stream


def test_copies_that_overtake_the_device_are_not_kept_for_as_long_as_they_come() -> None:
    """16 addresses with the packets of a few seconds each; without the cut it is ten times as much."""
    overtaken(10)
    assert kept_by(lambda: overtaken(300)) < 400_000


def test_codecs_keep_nothing() -> None:
    def work() -> None:
        for name, target in TARGETS.items():
            for number in range(40):
                target.check(target.make(Random(f"memory:{name}:{number}")))

    work()
    assert kept_by(work) < PARSERS_CACHE


@pytest.mark.parametrize("packet_type", [b"\x30\xff\xff\x07", b"\x30\xff\xff\xff\x7f", b"\x30\xff\xff\xff\xff"])
def test_a_packet_without_an_end_is_not_collected(packet_type: bytes) -> None:
    front, client = Splitter(), BrokerReader()
    for chunk in (packet_type, *[b"\x00\x01a" * 1365] * 100):
        front.feed(chunk)
        list(client.feed(chunk))
        assert len(front._rest) <= LARGEST_OF_DEVICE
        assert len(client._splitter._rest) <= LARGEST_OF_BROKER


def test_a_line_without_an_end_is_told() -> None:
    reader = SseReader()
    fed = 0
    while not reader.is_too_long:
        assert reader.feed(b"x" * 60_000) == []
        fed += 60_000
    assert fed <= MAX_LINE + 60_000


@pytest.mark.parametrize(
    "chunk",
    [
        b'{"choices":[{"delta":{"content":"' + b"a" * 1000 + b'"}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"' + b"[" * 1000
        + b'"}}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{}}},'
        b'{"function":{"name":"g","arguments":{}}}]}}]}',
    ],
    ids=["text", "arguments", "calls"],
)  # fmt: skip
def test_an_answer_without_an_end_is_cut_off(chunk: bytes) -> None:
    answer, written = StreamedAnswer(), 0
    while not answer.fault:
        written += len(answer.feed(chunk))
        assert written <= LARGEST_ANSWER
    assert answer._written <= LARGEST_ANSWER + 1000
    assert answer._calls.size <= LARGEST_ANSWER + 1000


@pytest.mark.parametrize("unit", ["a", "中", "a ", "```", "`", "a\n", "（", "1.", "e.g. ", "\u200d", "!"])
def test_work_on_a_long_text_grows_with_its_length_only(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step looks at a bounded stretch, so the number of steps and what is moved with each piece say it all."""
    steps, held = 0, 0
    check = SentenceSplitter._check

    def counted(self: SentenceSplitter, final: bool) -> int | None:
        nonlocal steps, held
        steps, held = steps + 1, max(held, len(self._text))
        return check(self, final)

    monkeypatch.setattr(SentenceSplitter, "_check", counted)
    text = unit * (30_000 // len(unit))
    splitter = SentenceSplitter()
    pieces = splitter.feed(text)
    assert len(splitter._text) <= LONGEST_CODE + len(unit)
    pieces += splitter.flush()
    assert max(map(len, pieces)) <= (LONGEST_CODE if "`" in unit else LONGEST)
    assert steps <= 4 * len(text)
    assert held <= sentences._CHUNK + LONGEST_CODE + 10


@pytest.mark.parametrize("endpoint_ms", [700.0, None], ids=["endpoint", "push-to-talk"])
@pytest.mark.parametrize("speech", [[0.9], [0.0], [0.9, 0.0]], ids=["never silent", "never speech", "flickering"])
def test_a_recording_has_a_longest_length(endpoint_ms: float | None, speech: list[float]) -> None:
    collector = UtteranceCollector(endpoint_ms)
    frame = bytes(FRAME_MS * BYTES_PER_MS)
    for number in range(2000):
        collector.add(frame, speech[number % len(speech)], number * 0.06)
        held = sum(map(len, collector._pieces)) + sum(map(len, collector._before))
        assert held <= (LONGEST_MS + 10 * FRAME_MS) * BYTES_PER_MS
