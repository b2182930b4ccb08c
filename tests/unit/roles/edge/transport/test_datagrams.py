"""Both forms of reading and writing datagrams. Where the native part is missing, the one in Python alone is tested."""

import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from fleet.roles.edge.transport import datagrams
from fleet.roles.edge.transport.datagrams import Address, Datagrams, Expected, PlainDatagrams, Usual, open_datagrams
from fleet.roles.edge.transport.packet_pace import Terms
from fleet.wire.packet import Channel
from tests.fuzz.native_targets import HOST, check_batches, make_batches
from tests.support.datagram_arrival import deliver
from tests.support.socket_forms import NATIVE_FORMS

KEY = bytes(range(16))
FRAME_MS = 60
IN_TIME: Terms = (1.0, 0.05, 0.2)
EARLY: Terms = (1.3, 0.05, 0.2)
"""A packet at 1.0 comes too early."""


class Loopback:
    """A socket in one of the forms, and a device."""

    def __init__(self, native: bool) -> None:
        self.counters = Counter[str]()
        self.server, self.device = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for one in (self.server, self.device):
            one.bind((HOST, 0))
            one.setblocking(False)
        self.form: Datagrams = open_datagrams(self.server, self.counters, native=native)

    def send(self, *sent: bytes) -> None:
        for datagram in sent:
            deliver(self.device, datagram, self.server)

    def hear(self, count: int) -> list[bytes]:
        """Return what reaches the device, when so many datagrams have."""
        self.device.settimeout(240.0)
        return [self.device.recv(2048) for _ in range(count)]

    def read(self, now: float = 0.0) -> list[bytes | Usual]:
        """Return the datagrams that came, and what their stream expected."""
        came: list[bytes | Usual] = []
        for usual, others in self.form.read(now):
            came += usual
            for datagram, sender in others:
                assert sender == self.device.getsockname()
                came.append(datagram)
        return came


@pytest.fixture(params=NATIVE_FORMS, ids=lambda native: "native" if native else "plain")
def loopback(request: pytest.FixtureRequest) -> Iterator[Loopback]:
    made = Loopback(request.param)
    yield made
    made.form.close()
    made.server.close()
    made.device.close()


def test_what_comes_is_taken_in_order_and_counted(loopback: Loopback) -> None:
    sent = [b"%d" % number for number in range(100)]
    loopback.send(*sent)
    assert loopback.read() == sent
    assert not loopback.read()
    assert loopback.counters == {"received": 100}


def test_a_tick_takes_a_bounded_number(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "LARGEST_DRAIN", 64)
    monkeypatch.setattr(datagrams, "_NATIVE_DRAIN", 32)
    loopback.send(*[b"x"] * 100)
    assert len(loopback.read()) == 64
    assert len(loopback.read()) == 36


def test_who_stops_reading_finds_the_rest_the_next_time(loopback: Loopback) -> None:
    loopback.send(b"one", b"two", b"three")
    for _, others in loopback.form.read(0.0):
        if first := next(others, None):
            assert first[0] == b"one"
            break
    loopback.send(b"four")
    assert loopback.read() == [b"two", b"three", b"four"]


def test_what_is_sent_arrives_after_the_flush(loopback: Loopback) -> None:
    sent = [b"%d" % number for number in range(150)]
    for datagram in sent:
        loopback.form.send(datagram, loopback.device.getsockname())
    loopback.form.flush()
    assert loopback.hear(len(sent)) == sent
    assert not loopback.counters


def test_what_cannot_be_sent_is_counted_and_costs_no_other_one(loopback: Loopback) -> None:
    here = loopback.device.getsockname()
    for datagram, address in ((b"1", here), (bytes(70_000), here), (b"2", here)):
        loopback.form.send(datagram, address)
    loopback.form.flush()
    assert loopback.hear(2) == [b"1", b"2"]
    assert loopback.counters == {"send_failed": 1}


def test_packets_are_numbered_sealed_and_sent_wherever_the_device_is(loopback: Loopback) -> None:
    plain, channel = Channel(KEY, 7), loopback.form.channel(KEY, 7, FRAME_MS)
    assert not channel.send(b"nowhere") and channel.sent == 0
    channel.move(loopback.device.getsockname())
    payloads = [bytes(size) for size in (0, 1, 200, 1184)] * 40
    assert all(channel.send(payload) for payload in payloads)
    loopback.form.flush()
    heard = loopback.hear(len(payloads))
    assert heard == [plain.seal(payload, FRAME_MS * number, number) for number, payload in enumerate(payloads, 1)]
    assert [channel.open(datagram) for datagram in heard] == payloads
    channel.move((HOST, 9))
    channel.send(b"elsewhere")
    loopback.form.send(b"between", loopback.device.getsockname())
    channel.move(loopback.device.getsockname())
    channel.send(b"back")
    loopback.form.flush()
    assert channel.sent == len(payloads) + 2
    assert loopback.hear(2) == [b"between", plain.seal(b"back", FRAME_MS * channel.sent, channel.sent)]


@pytest.mark.parametrize("loopback", [form for form in NATIVE_FORMS if form], indirect=True)
@pytest.mark.parametrize("wrong", [(HOST, 65_536), ("::1", 9), ("nowhere", 9)])
def test_an_address_that_is_none_changes_nothing(loopback: Loopback, wrong: Address) -> None:
    channel = loopback.form.channel(KEY, 7, FRAME_MS)
    for expected in (False, True):
        with pytest.raises(ValueError, match="no IPv4 address"):
            channel.move(wrong)
        assert channel.send(b"packet") is expected
        channel.move(loopback.device.getsockname())
    loopback.form.flush()
    assert loopback.hear(1) == [Channel(KEY, 7).seal(b"packet", FRAME_MS, 1)]


@pytest.mark.parametrize("loopback", [form for form in NATIVE_FORMS if form], indirect=True)
def test_what_no_datagram_holds_takes_no_number(loopback: Loopback) -> None:
    channel = loopback.form.channel(KEY, 7, FRAME_MS)
    channel.move(loopback.device.getsockname())
    with pytest.raises(ValueError, match="too long"):
        channel.send(bytes(2048))
    assert channel.sent == 0


@pytest.mark.parametrize("loopback", [form for form in NATIVE_FORMS if form], indirect=True)
def test_the_native_part_passes_on_only_what_is_expected(loopback: Loopback) -> None:
    plain, channel = Channel(KEY, 7), loopback.form.channel(KEY, 7, FRAME_MS)
    assert not isinstance(channel, Channel)

    def packet(sequence: int, first: int = 0x58, flags: int = 0) -> bytes:
        payload = bytes((first,)) + b"audio"
        header = b"\1" + bytes((flags,)) + len(payload).to_bytes(2) + (7).to_bytes(4) + bytes(4) + sequence.to_bytes(4)
        return header + plain.open(header + payload)

    def expect(
        newest: int,
        first: int = 0x58,
        address: Address | None = None,
        paces: tuple[Terms, Terms] = (IN_TIME, IN_TIME),
        highest: int = 99,
    ) -> None:
        home = address or loopback.device.getsockname()
        channel.expect(Expected(home, first, newest, 1.0, 1.0, 0.6, *paces, highest))

    expect(4)
    loopback.send(packet(5), packet(6))
    assert channel.progress() is None
    assert loopback.read(1.5) == [(7, 5, 0, b"\x58audio"), (7, 6, 0, b"\x58audio")]
    assert channel.progress() == (6, 1.5, 1.5, 1.5 + 2 * 0.05, 1.5 + 2 * 0.05)
    assert channel.progress() is None, "no more since then"
    for unusual in (packet(4), packet(6), packet(5, 0x48), packet(5, flags=0x80)):
        expect(4)
        # What follows has to wait for what Python says of it.
        loopback.send(unusual, packet(5))
        assert loopback.read(1.5) == [unusual, packet(5)]
    expect(4)
    loopback.send(packet(5))
    assert loopback.read(1.7) == [packet(5)], "too late"
    expect(4, address=(HOST, 9))
    loopback.send(packet(5))
    assert loopback.read(1.0) == [packet(5)], "from elsewhere"
    expect(4, first=0x59)
    loopback.send(packet(5, 0x59))
    assert loopback.read(1.0) == [packet(5, 0x59)], "several frames"
    for paces, highest in (((EARLY, IN_TIME), 99), ((IN_TIME, EARLY), 99), ((IN_TIME, IN_TIME), 4)):
        expect(4, paces=paces, highest=highest)
        loopback.send(packet(5))
        assert loopback.read(1.0) == [packet(5)], "before its time"
    for end in (channel.stop, channel.close):
        expect(4)
        end()
        loopback.send(packet(5))
        assert loopback.read(1.0) == [packet(5)]


@pytest.mark.parametrize("said", [{}, {"INTERFACE": datagrams.INTERFACE - 1}, {"INTERFACE": "2"}])
def test_a_native_part_of_another_version_is_left_alone_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, said: dict[str, object]
) -> None:
    monkeypatch.setitem(sys.modules, "fleet_native", SimpleNamespace(**said))
    assert not datagrams.has_native()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        assert isinstance(open_datagrams(opened, Counter(), native=True), PlainDatagrams)
    assert "native part does not fit" in caplog.text


@pytest.mark.parametrize(
    "source",
    [
        "import no_such_library",
        "raise ImportError('libcrypto.so.3: cannot open')",
        "raise RuntimeError",
        "raise OSError",
    ],
)
def test_a_native_part_that_cannot_be_loaded_is_left_alone_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, source: str
) -> None:
    (tmp_path / "fleet_native.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fleet_native", raising=False)
    assert not datagrams.has_native()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        assert isinstance(open_datagrams(opened, Counter(), native=True), PlainDatagrams)
    assert "native part cannot be loaded" in caplog.text


def test_without_a_native_part_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "fleet_native", None)
    assert not datagrams.has_native()
    assert not caplog.records


@pytest.mark.parametrize("native", [form for form in NATIVE_FORMS if form])
def test_most_packets_of_a_device_need_no_python_to_be_decided_about(native: bool) -> None:
    usual = sum(check_batches(make_batches(Random(f"usual:{number}"))).usual for number in range(30))
    assert usual > 200
