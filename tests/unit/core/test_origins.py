"""Which pages a server's browsers may bring."""

import pytest

from fleet.core.origins import Origins

LAN, HERE = "192.0.2.5:9400", "localhost:9400"


@pytest.mark.parametrize(
    ("listed", "origin", "host", "admitted"),
    [
        ("local", "http://192.0.2.5:9400", LAN, True),
        ("local", "http://192.0.2.5", LAN, True),
        ("local", "https://gw.example.org", "gw.example.org:9400", True),
        ("local", "https://GW.example.org", "gw.Example.org", True),
        ("local", "http://[2001:db8::1]:9400", "[2001:db8::1]:9400", True),
        ("local", "https://evil.example", LAN, False),
        ("local", "https://evil.example", HERE, False),
        ("local", "https://192.0.2.5.evil.example", LAN, False),
        ("local", "http://192.0.2.50", LAN, False),
        ("local", "http://localhost.evil.example", HERE, False),
        ("local", "http://evil.example:80@192.0.2.5", "192.0.2.6", False),
        ("local", "http://", "", False),
        ("local", "http://[::1", "[::1", False),
        ("local", "http://localhost:5173", LAN, True),
        ("local", "http://app.localhost:3000", LAN, True),
        ("local", "http://127.0.0.1:3000", HERE, True),
        ("local", "http://[::1]:3000", HERE, True),
        ("local", "null", HERE, True),
        ("local", "null", "127.0.0.1:9400", True),
        ("local", "null", LAN, False),
        ("local", "file://", LAN, True),
        ("local", "capacitor://localhost", LAN, True),
        ("", "http://192.0.2.5:9400", LAN, True),
        ("", "http://localhost:5173", LAN, False),
        ("", "null", HERE, False),
        ("null", "null", LAN, True),
        ("null", "http://localhost:5173", LAN, False),
        ("*", "https://evil.example", LAN, True),
        ("https://app.example.org", "https://app.example.org", LAN, True),
        ("https://app.example.org:443, http://x:80", "https://app.example.org", LAN, True),
        ("https://app.example.org:443, http://x:80", "http://x", LAN, True),
        ("https://app.example.org", "http://app.example.org", LAN, False),
        ("https://app.example.org", "https://app.example.org:8443", LAN, False),
        ("https://app.example.org", "null", HERE, False),
    ],
)
def test_a_page_is_admitted_by_where_it_is_from(listed: str, origin: str, host: str, admitted: bool) -> None:
    assert Origins(listed).admits(origin, host) is admitted


@pytest.mark.parametrize(
    "listed", ["app.example.org", "https://a.example/path", "https://*.example", "none", "ftp://a"]
)
def test_what_is_no_origin_is_no_setting(listed: str) -> None:
    with pytest.raises(ValueError, match="is not http"):
        Origins(listed)
