import pytest

from fleet.wire.presence import Presence, parse


def test_presence_is_read_and_more_fields_are_ignored() -> None:
    assert parse(b'{"online":true,"epoch":17,"ip":"192.0.2.1"}') == Presence(online=True, epoch=17)


@pytest.mark.parametrize("payload", [b"", b"{}", b'{"online":true}', b'{"online":true,"epoch":-1}', b"\xff"])
def test_bad_presence_is_none(payload: bytes) -> None:
    assert parse(payload) is None
