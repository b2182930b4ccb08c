"""Whose word is believed about addresses."""

import pytest

from fleet.core.proxies import Proxies, site

TRUSTED = "127.0.0.1, ::1, 10.0.0.0/8, nobody"


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.7"], "198.51.100.7"),
        ("10.1.2.3", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        ("10.1.2.3", ["203.0.113.9", "198.51.100.7, 10.9.9.9"], "198.51.100.7"),
        ("10.1.2.3", ["10.0.0.4, 10.0.0.5"], "10.0.0.4"),
        ("10.1.2.3", ["198.51.100.7:4711"], "198.51.100.7"),
        ("10.1.2.3", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("10.1.2.3", ["junk"], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.9, junk, 10.9.9.9"], "10.9.9.9"),
        ("10.1.2.3", [""], "10.1.2.3"),
        ("::ffff:10.1.2.3", ["198.51.100.7"], "198.51.100.7"),
        ("", ["198.51.100.7"], ""),
    ],
)
def test_the_client_is_who_stands_before_the_proxies(peer: str, forwarded: list[str], client: str) -> None:
    assert Proxies(TRUSTED).client(peer, forwarded) == client


def test_everybody_may_be_trusted_and_nobody() -> None:
    assert Proxies("*").client("192.0.2.1", ["198.51.100.7"]) == "198.51.100.7"
    assert Proxies("").client("127.0.0.1", ["198.51.100.7"]) == "127.0.0.1"


def test_an_ipv6_network_is_one_site() -> None:
    assert site("2001:db8:0:7::1") == site("2001:db8:0:7:ffff::2") == "2001:db8:0:7::/64"
    assert site("2001:db8:0:8::1") != site("2001:db8:0:7::1")
    assert site("192.0.2.1") == "192.0.2.1"
    assert site("") == ""
