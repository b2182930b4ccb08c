from fleet.workbench.sim.connection.datagram import Cryptor, SocketSlots
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.profiles.profile import PROFILES, Profile

KEY = bytes(range(16))
NONCE = bytes.fromhex("01000000112233440000000000000000")
PAYLOAD = bytes([0x58]) + b"\xaa" * 19
UP = bytes.fromhex("01000014112233440000000000000001793287ab24ea30d90ae90a5df6da8d871b0d2878")
DOWN = bytes.fromhex("01800014112233440000003c00000001e386b6ea5b6c5c47868c60863c1251eeaf5f3e46")


def _cryptor(profile: Profile = PROFILES["P1"]) -> Cryptor:
    return Cryptor(ServerHello("s", "127.0.0.1", 1, KEY, NONCE), profile)


def _datagram(sequence: int, payload: bytes = PAYLOAD, kind: int = 1, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    head = bytes([kind, 0x80]) + size.to_bytes(2, "big") + bytes(4) + sequence.to_bytes(4, "big")
    return head + sequence.to_bytes(4, "big") + payload


def test_the_first_uplink_packet_is_the_one_of_the_contract() -> None:
    assert _cryptor().seal(PAYLOAD) == (UP, False)


def test_the_downlink_packet_of_the_contract_opens() -> None:
    cryptor = _cryptor()
    assert cryptor.refuse(DOWN) is None
    assert cryptor.open(DOWN) == (PAYLOAD, 0, False)


def test_the_downlink_is_refused_for_size_type_length_and_sequence() -> None:
    cryptor = _cryptor()
    assert cryptor.refuse(DOWN[:15]) == "short"
    assert cryptor.refuse(_datagram(1, kind=2)) == "type"
    assert cryptor.refuse(_datagram(1, length=19)) == "length"
    assert cryptor.refuse(_datagram(0)) == "sequence"
    cryptor.open(_datagram(5))
    assert cryptor.refuse(_datagram(5)) == "sequence"
    assert cryptor.refuse(_datagram(4)) == "sequence"
    assert cryptor.refuse(_datagram(6)) is None


def test_old_firmware_accepts_equal_numbers_and_any_length_but_not_small_datagrams() -> None:
    old = Profile("old", sequence_may_repeat=True, exact_length=False, smallest_datagram=24)
    cryptor = _cryptor(old)
    cryptor.open(_datagram(5))
    assert cryptor.refuse(_datagram(5)) is None
    assert cryptor.refuse(_datagram(6, length=3)) is None
    assert cryptor.refuse(_datagram(6, b"1234567")) == "short"


def test_skipped_numbers_are_counted() -> None:
    cryptor = _cryptor()
    cryptor.open(_datagram(3))
    assert cryptor.open(_datagram(7))[1] == 3


def test_a_downlink_that_repeats_a_header_meets_itself() -> None:
    cryptor = _cryptor()
    assert not cryptor.open(DOWN)[2]
    assert cryptor.open(DOWN)[2]


def test_a_downlink_with_the_uplinks_flags_and_no_timestamp_meets_the_uplink() -> None:
    cryptor = _cryptor()
    cryptor.seal(PAYLOAD)
    assert cryptor.open(UP)[2]


def test_the_seventh_datagram_within_5_ms_is_lost() -> None:
    slots = SocketSlots(6)
    assert [slots.admit(1.0 + number * 0.0005) for number in range(8)] == [True] * 6 + [False] * 2
    assert slots.admit(1.02)


def test_datagrams_10_ms_apart_always_fit() -> None:
    slots = SocketSlots(6)
    assert all(slots.admit(number * 0.01) for number in range(100))
