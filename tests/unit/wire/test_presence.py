import pytest

from fleet.wire.presence import Presence, parse


def test_presence_is_read_and_more_fields_are_ignored() -> None:
    assert parse(b'{"online":true,"epoch":17,"ip":"192.0.2.1"}') == Presence(online=True, epoch=17)


@pytest.mark.parametrize("payload", [b"", b"{}", b'{"online":true}', b'{"online":true,"epoch":-1}', b"\xff"])
def test_bad_presence_is_none(payload: bytes) -> None:
    assert parse(payload) is None


def test_presence_may_say_who_connected() -> None:
    told = parse(b'{"online":true,"epoch":17,"user":"device.k1.first.3"}')
    assert told == Presence(online=True, epoch=17, user="device.k1.first.3")


@pytest.mark.parametrize(
    "user", ['"service.k1"', '"device.k1.first.03"', '"device.k1.first.' + "9" * 5000 + '"', "7", "null", '{"a":1}']
)
def test_what_is_no_user_name_of_a_device_leaves_presence_as_it_is(user: str) -> None:
    assert parse(f'{{"online":true,"epoch":17,"user":{user}}}'.encode()) == Presence(online=True, epoch=17)
