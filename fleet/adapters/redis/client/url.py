"""The address of Redis: one server, Sentinels that know the primary, or a Cluster."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote

from fleet.ground.errors import ConfigError

Kind = Literal["server", "sentinel", "cluster"]

_SCHEMES: Final[dict[str, tuple[Kind, bool]]] = {
    "redis": ("server", False),
    "rediss": ("server", True),
    "unix": ("server", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
_PORTS: Final[dict[Kind, int]] = {"server": 6379, "sentinel": 26379, "cluster": 6379}
_URL = re.compile(r"([a-z+]+)://(?:([^/?]*)@)?([^/?@]*)(/[^?]*)?(?:\?(.*))?", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:\s]+)(?::(\d+))?", re.IGNORECASE)
_TLS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")


@dataclass(frozen=True, slots=True)
class RedisLogin:
    """Name and password; None if the server requires none."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address of Redis, with logins and TLS options."""

    kind: Kind
    hosts: tuple[tuple[str, int], ...]
    """The server, the Sentinels, or some nodes of the Cluster; empty for a socket."""
    socket: str = ""
    """Path of a server's socket."""
    sentinel_service: str = ""
    """The name under which the Sentinels know the primary."""
    database: int = 0
    login: RedisLogin = RedisLogin()
    sentinel_login: RedisLogin = RedisLogin()
    tls: bool = False
    tls_options: Mapping[str, str | bool] = field(default_factory=dict)
    """Arguments of redis-py that begin with `ssl_`."""


def parse_redis_url(url: str, authorities: Path | None = None) -> RedisAddress:
    """Read FLEET_REDIS_URL.

    `redis://[user:password@]host[:port][/database]`, `rediss://…` with TLS, `unix://[user:password@]/path[?db=n]`,
    `redis+sentinel://[user:password@]host[:port],…/name[/database][?sentinel_password=…]` and
    `redis+cluster://[user:password@]host[:port],…`, the last two also as `rediss+…`. Special characters in a name or
    password are percent-encoded. `?db=n` overrides a database in the path. `?username=…` and `?password=…` stand in
    for a name and a password before the host.

    Args:
        url: The setting's text.
        authorities: PEM file with authorities for TLS where the URL has no `ssl_ca_certs`, besides the system's.

    Raises:
        ConfigError: The address is invalid; the message never shows a password.
    """
    match = _URL.fullmatch(url.strip())
    if match is None or match[1].lower() not in _SCHEMES:
        raise _wrong(f"must begin with one of {', '.join(f'{scheme}://' for scheme in _SCHEMES)}")
    scheme, login, hosts, path, query = (part or "" for part in match.groups())
    kind, tls = _SCHEMES[scheme.lower()]
    options = _Options(query)
    if scheme.lower() == "unix":
        if hosts or len(path) < 2:
            raise _wrong("unix:// is followed by the path of a socket, as in unix:///run/redis.sock")
        database = _number(options.take("db") or "0")
        address = RedisAddress(kind, (), socket=unquote(path), database=database, login=_login(login, options))
    else:
        sentinel_service, database = _service_and_database(kind, path, options)
        found = tuple(_host(host, _PORTS[kind]) for host in hosts.split(","))
        if kind == "server" and len(found) > 1:
            raise _wrong("several hosts need redis+sentinel:// or redis+cluster://")
        sentinel_login = RedisLogin()
        if kind == "sentinel":
            sentinel_login = RedisLogin(options.take("sentinel_username"), options.take("sentinel_password"))
        address = RedisAddress(
            kind,
            hosts=found,
            sentinel_service=sentinel_service,
            database=database,
            login=_login(login, options),
            sentinel_login=sentinel_login,
            tls=tls,
            tls_options=_tls_options(options, authorities) if tls else {},
        )
    options.check()
    return address


class _Options:
    """The options after the question mark; an option that no part takes is an error."""

    def __init__(self, query: str) -> None:
        self._left = dict(parse_qsl(query, keep_blank_values=True))

    def take(self, name: str) -> str | None:
        return self._left.pop(name, None)

    def check(self) -> None:
        if self._left:
            raise _wrong(f"has an unknown or unfitting option {sorted(self._left)[0]}")


def _service_and_database(kind: Kind, path: str, options: _Options) -> tuple[str, int]:
    """Return the primary's name among Sentinels (else empty) and the number of the database."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    sentinel_service = parts.pop(0) if kind == "sentinel" else ""
    if kind == "sentinel" and not sentinel_service:
        raise _wrong("needs the primary's name, as in redis+sentinel://host:26379/mymaster/0")
    if len(parts) > 1:
        raise _wrong("has too many parts after the host")
    database = _number(options.take("db") or (parts[0] if parts else "") or "0")
    if kind == "cluster" and database:
        raise _wrong("a Cluster has only database 0")
    return sentinel_service, database


def _login(text: str, options: _Options) -> RedisLogin:
    name, _, password = text.partition(":")
    return RedisLogin(
        unquote(name) or options.take("username") or None, unquote(password) or options.take("password") or None
    )


def _host(text: str, port: int) -> tuple[str, int]:
    match = _HOST.fullmatch(text.strip())
    if match is None:
        raise _wrong("each host is name, name:port or [IPv6]:port" if text.strip() else "names no host")
    number = int(match[2] or port)
    if not 0 < number < 65536:
        raise _wrong(f"{number} is no port")
    return match[1].strip("[]"), number


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,5}", text):
        raise _wrong("the database is a number, as in redis://host:6379/0")
    return int(text)


def _tls_options(options: _Options, authorities: Path | None) -> dict[str, str | bool]:
    given = {name: value for name in _TLS if (value := options.take(name)) is not None}
    checked: dict[str, str | bool] = {"ssl_ca_certs": str(authorities)} if authorities else {}
    checked |= given
    if given.get("ssl_cert_reqs", "required") not in ("required", "optional", "none"):
        raise _wrong("ssl_cert_reqs is required, optional or none")
    wish = given.get("ssl_check_hostname", "true").lower()
    if wish not in ("true", "false"):
        raise _wrong("ssl_check_hostname is true or false")
    # The ssl module refuses to check a host name without a certificate.
    checked["ssl_check_hostname"] = wish == "true" and given.get("ssl_cert_reqs", "required") == "required"
    return checked


def _wrong(reason: str) -> ConfigError:
    return ConfigError(f"FLEET_REDIS_URL {reason}")
