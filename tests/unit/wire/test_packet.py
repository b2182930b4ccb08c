from hypothesis import given
from hypothesis import strategies as st

from fleet.wire import packet

KEY = bytes(range(16))
SSRC = 0x11223344
PAYLOAD = b"\x58" + b"\xaa" * 19
# The vectors of the device contract, section 4.1.
UPLINK = bytes.fromhex("01000014112233440000000000000001793287ab24ea30d90ae90a5df6da8d871b0d2878")
DOWNLINK = bytes.fromhex("01800014112233440000003c00000001e386b6ea5b6c5c47868c60863c1251eeaf5f3e46")


def test_a_devices_packet_opens() -> None:
    assert packet.parse(UPLINK) == packet.Header(flags=0, length=20, ssrc=SSRC, timestamp=0, sequence=1)
    assert packet.Channel(KEY, SSRC).open(UPLINK) == PAYLOAD


def test_a_sealed_packet_is_byte_for_byte_what_firmware_expects() -> None:
    channel = packet.Channel(KEY, SSRC)
    channel.seal(b"another packet before", 1, 7)
    assert channel.seal(PAYLOAD, 60, 1) == DOWNLINK


def test_the_nonce_leaves_zero_what_the_device_overwrites() -> None:
    assert packet.nonce(SSRC).hex() == "01000000112233440000000000000000"


def test_packets_that_lie_about_themselves_are_refused() -> None:
    assert packet.parse(UPLINK[:15]) is None
    assert packet.parse(UPLINK + b"x") is None
    assert packet.parse(b"\x02" + UPLINK[1:]) is None
    assert packet.parse(b"") is None


@given(st.binary(max_size=100))
def test_no_datagram_raises(datagram: bytes) -> None:
    header = packet.parse(datagram)
    if header is not None:
        assert len(packet.Channel(KEY, SSRC).open(datagram)) == header.length
