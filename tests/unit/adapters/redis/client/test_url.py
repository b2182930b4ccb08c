from pathlib import Path

import pytest

from fleet.adapters.redis.client.url import RedisAddress, RedisLogin, parse_redis_url
from fleet.ground.errors import ConfigError


def test_a_server() -> None:
    assert parse_redis_url("redis://host") == RedisAddress("server", (("host", 6379),))
    assert parse_redis_url("redis://:pw@host:1/2") == RedisAddress(
        "server", (("host", 1),), database=2, login=RedisLogin(None, "pw")
    )
    assert parse_redis_url("redis://[::1]:7/0").hosts == (("::1", 7),)
    assert parse_redis_url("redis://host?db=3").database == 3
    assert parse_redis_url("redis://host/2?db=3").database == 3, "?db= overrides the path"


def test_a_password_may_hold_anything_when_it_is_encoded() -> None:
    assert parse_redis_url("redis://us%40er:p%2F%3A%3F%25@host").login == RedisLogin("us@er", "p/:?%")


def test_a_socket() -> None:
    address = parse_redis_url("unix://:pw@/run/redis%20one.sock?db=1")
    assert (address.socket, address.database, address.login.password) == ("/run/redis one.sock", 1, "pw")
    assert parse_redis_url("unix:///run/r.sock?password=pw").login == RedisLogin(None, "pw")


def test_tls() -> None:
    address = parse_redis_url("rediss://host?ssl_ca_certs=/ca.pem")
    assert address.tls
    assert address.tls_options == {"ssl_ca_certs": "/ca.pem", "ssl_check_hostname": True}
    assert parse_redis_url("rediss://host", Path("/own.pem")).tls_options["ssl_ca_certs"] == "/own.pem"
    assert parse_redis_url("rediss://host?ssl_ca_certs=/ca.pem", Path("/own.pem")).tls_options == address.tls_options
    assert parse_redis_url("redis://host", Path("/own.pem")).tls_options == {}
    unchecked = parse_redis_url("rediss://host?ssl_cert_reqs=none")
    assert unchecked.tls_options == {"ssl_cert_reqs": "none", "ssl_check_hostname": False}


def test_sentinels() -> None:
    url = "redis+sentinel://u:p@a:1,b/my%20master/4?sentinel_username=su&sentinel_password=sp"
    assert parse_redis_url(url) == RedisAddress(
        "sentinel", (("a", 1), ("b", 26379)), "", "my master", 4, RedisLogin("u", "p"), RedisLogin("su", "sp")
    )
    assert parse_redis_url("rediss+sentinel://a/m").tls


def test_a_cluster() -> None:
    address = parse_redis_url("rediss+cluster://:p@a:7001,[fe80::1]:7002,c/0")
    assert address.hosts == (("a", 7001), ("fe80::1", 7002), ("c", 6379))
    assert (address.kind, address.tls, address.login) == ("cluster", True, RedisLogin(None, "p"))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "must begin with"),
        ("localhost:6379", "must begin with"),
        ("http://host", "must begin with"),
        ("redis://", "names no host"),
        ("redis://a,b", "several hosts"),
        ("redis://host:port", "each host is"),
        ("redis://host:0", "0 is no port"),
        ("redis://host:65536", "65536 is no port"),
        ("redis://host/zero", "database is a number"),
        ("redis://host/0/1", "too many parts"),
        ("redis://host?socket_timeout=99", "option socket_timeout"),
        ("redis://host?ssl_ca_certs=x", "option ssl_ca_certs"),
        ("redis://host?sentinel_password=x", "option sentinel_password"),
        ("rediss://host?ssl_cert_reqs=maybe", "required, optional or none"),
        ("rediss://host?ssl_check_hostname=1", "true or false"),
        ("unix://host/path", "path of a socket"),
        ("unix://", "path of a socket"),
        ("redis+sentinel://host:1", "primary's name"),
        ("redis+sentinel://host:1,,b/m", "names no host"),
        ("redis+cluster://host/1", "only database 0"),
        ("redis+cluster://::1/0", "each host is"),
    ],
)
def test_what_is_no_address_is_explained(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_redis_url(url)


def test_no_message_and_no_log_shows_a_password() -> None:
    for url in ("redis://user:secret@host:x", "redis://user:secret@host/x", "redes://user:secret@host"):
        with pytest.raises(ConfigError) as caught:
            parse_redis_url(url)
        assert "secret" not in str(caught.value)
    assert "secret" not in repr(parse_redis_url("redis+sentinel://u:secret@h/m?sentinel_password=secret"))
