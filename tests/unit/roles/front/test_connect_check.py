"""Who is let in by its first packet."""

import pytest

from fleet.roles.front.connect_check import Admitted, ConnectRefused, admit
from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Packet, Splitter
from fleet.wire.mqtt.packets import Connect, Will
from fleet.wire.topics import up_topic

KEYS = CredentialKeys("new:a-key-for-tests-only-1,old:a-key-for-tests-only-2")
MAC = "02:00:00:00:00:07"
MINE = KEYS.issue("device", MAC)


def packet(wish: Connect) -> Packet:
    return Splitter().feed(mqtt.connect(wish))[0]


def wish(**changes: object) -> Connect:
    fields = {"client_id": MAC, "username": MINE.username, "password": MINE.password, "keepalive": 30, **changes}
    return Connect(**fields)  # type: ignore[arg-type]  # a test may pass anything


def test_device_is_let_in_with_every_valid_key() -> None:
    assert admit(packet(wish()), KEYS) == Admitted(MAC, 30, username="device.new")
    old = CredentialKeys("old:a-key-for-tests-only-2").issue("device", MAC)
    assert admit(packet(wish(username=old.username, password=old.password)), KEYS) == Admitted(
        MAC, 30, username=old.username
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"client_id": "02:00:00:00:00:08"}, 5),
        ({"client_id": MAC.replace(":", "-")}, 2),
        ({"client_id": ""}, 2),
        ({"password": "wrong"}, 5),
        ({"password": "пароль"}, 4),
        ({"password": None}, 4),
        ({"username": None, "password": None}, 4),
        ({"username": "device.unknown"}, 5),
    ],
)
def test_wrong_wish_is_refused_with_its_code(changes: dict[str, object], code: int) -> None:
    verdict = admit(packet(wish(**changes)), KEYS)
    assert isinstance(verdict, ConnectRefused)
    assert verdict.answer == bytes((0x20, 2, 0, code))


def test_service_is_refused_even_with_its_right_password() -> None:
    service = KEYS.issue("service", MAC)
    verdict = admit(packet(wish(username=service.username, password=service.password)), KEYS)
    assert isinstance(verdict, ConnectRefused)
    assert verdict.reason == "not authorised"


def test_damaged_connect_is_refused_without_an_answer() -> None:
    raw = mqtt.connect(wish())
    assert admit(Packet(1, 0, 2, raw[:-1]), KEYS) == ConnectRefused("malformed")


@pytest.mark.parametrize(
    ("will", "kept"),
    [
        (Will(up_topic(MAC), b"gone", 1), mqtt.publish(up_topic(MAC), b"gone")),
        (Will(up_topic(MAC), b"gone", retain=True), b""),
        (Will(up_topic("02:00:00:00:00:08"), b"gone"), b""),
        (None, b""),
    ],
)
def test_only_a_last_message_on_the_own_up_topic_is_kept(will: Will | None, kept: bytes) -> None:
    assert admit(packet(wish(will=will)), KEYS) == Admitted(MAC, 30, kept, KEYS.issue("device", MAC).username)
