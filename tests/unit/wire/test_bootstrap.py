import pytest

from fleet.wire.bootstrap import endpoint_host, is_firmware, parse_body


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("192.0.2.7:8000", "192.0.2.7"),
        ("fleet.example", "fleet.example"),
        ("fleet.example:443", "fleet.example"),
        ("[::1]:8000", None),
        ("::1", None),
        ("", None),
        ("a b:1", None),
        ("x/y", None),
    ],
)
def test_only_hosts_that_firmware_can_use_become_endpoints(header: str, host: str | None) -> None:
    assert endpoint_host(header) == host


def test_a_bodys_board_and_version_are_read() -> None:
    body = parse_body(b'{"application":{"version":"2.4.2"},"board":{"type":"bread-compact-wifi"},"language":"zh-CN"}')
    assert (body.application.version, body.board.type, body.language) == ("2.4.2", "bread-compact-wifi", "zh-CN")


def test_a_language_that_is_no_locale_is_dropped() -> None:
    body = parse_body(b'{"board":{"type":"bread-compact-wifi"},"language":"../../etc/passwd"}')
    assert (body.board.type, body.language) == ("bread-compact-wifi", "")


@pytest.mark.parametrize("body", [b"", b'{"board":{"ssid":"my "net""}}', b"\xff", b"[]", b'{"application":5}'])
def test_a_broken_body_is_an_empty_one(body: bytes) -> None:
    assert parse_body(body).application.version == ""


@pytest.mark.parametrize(
    ("agent", "version", "firmware"),
    [
        ("bread-compact-wifi/2.4.2", "1", True),
        ("bread-compact-wifi/2.4.2", "", True),
        ("", "2", True),
        ("python-httpx/0.28.1", "", False),
        ("curl/8.5.0", "", False),
        ("Mozilla/5.0 (X11)", "", False),
        ("robot", "", False),
        ("robot/beta", " ", False),
        ("", "", False),
    ],
)
def test_firmware_is_known_by_its_headers(agent: str, version: str, firmware: bool) -> None:
    assert is_firmware(agent, version) is firmware
