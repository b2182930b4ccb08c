"""Who may connect: client ids, user names with a key id, and passwords derived from a shared key.

password = base64(HMAC-SHA256(key, client_id + "|" + username)), so that a password is worth nothing for another client
id and no password is ever stored. The user name is `<kind>.<key id>`: kind `device` (client id: a canonical MAC) or
`service` (client id: begins with `fleet-`), so that keys can rotate.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fleet.errors import ConfigError
from fleet.wire.topics import canonical_mac

Kind = Literal["device", "service"]

_USERNAME = re.compile(r"(device|service)\.([A-Za-z0-9_-]{1,32})")
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_LINE = re.compile(r"^([A-Za-z0-9_-]{1,32}) ([^\s:,]+)$")
"""A line of the Mosquitto plugin's file."""
_SHORTEST_KEY = 16
_SIGNATURE_BYTES = 24


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client puts into CONNECT."""

    client_id: str
    username: str
    password: str


def password(key: str, client_id: str, username: str) -> str:
    """Return the password of a client id and user name under one key."""
    digest = hmac.new(key.encode(), f"{client_id}|{username}".encode(errors="surrogatepass"), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class Keys:
    """The keys that are valid now, and whose credentials no longer count; the first key signs, all of them verify.

    One object for a whole process: who holds it sees every change at once.

    Args:
        text: `id:key` pairs separated by commas, white space or line ends, e.g. `k2:…,k1:…`; or the lines of the
            Mosquitto plugin's file, `id key`.

    Raises:
        ConfigError: No pair, a bad key id, a key id twice, or a key shorter than 16 characters.
    """

    def __init__(self, text: str) -> None:
        self._keys = parse_keys(text)
        self._revoked: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all valid keys, the signing one first."""
        return tuple(self._keys)

    @property
    def revoked(self) -> frozenset[str]:
        """The devices whose credentials do not count."""
        return self._revoked

    def replace(self, text: str) -> None:
        """Take other keys from now on.

        Raises:
            ConfigError: As at the beginning; the keys stay as they were.
        """
        self._keys = parse_keys(text)

    def revoke(self, macs: Iterable[str]) -> None:
        """Refuse these devices from now on, and no others."""
        self._revoked = frozenset(macs)

    def issue(self, kind: Kind, client_id: str) -> Credentials:
        """Return credentials for a client id under the first key."""
        newest = next(iter(self._keys))
        username = f"{kind}.{newest}"
        return Credentials(client_id, username, password(self._keys[newest], client_id, username))

    def verify(self, client_id: str, username: str, given: str) -> Kind | None:
        """Return the kind of client that these credentials prove, or None; compares in constant time."""
        found = _USERNAME.fullmatch(username)
        key = self._keys.get(found[2]) if found else None
        if found is None or key is None or not given.isascii():
            return None
        if not hmac.compare_digest(password(key, client_id, username), given) or client_id in self._revoked:
            return None
        if found[1] == "device":
            return "device" if canonical_mac(client_id) == client_id else None
        return "service" if client_id.startswith("fleet-") else None

    def sign(self, purpose: str, text: str) -> tuple[str, str]:
        """Return the first key's id and what it makes of a text, as URL-safe text; see `check`."""
        newest = next(iter(self._keys))
        return newest, _signature(self._keys[newest], purpose, text)

    def check(self, key_id: str, purpose: str, text: str, given: str) -> bool:
        """Whether a signature of `sign` is genuine; compares in constant time."""
        key = self._keys.get(key_id)
        return key is not None and hmac.compare_digest(_signature(key, purpose, text).encode(), given.encode())

    def as_file(self) -> str:
        """Return the keys as the lines `id key` that the Mosquitto plugin reads, the newest first."""
        return "".join(f"{name} {key}\n" for name, key in self._keys.items())


def parse_keys(text: str) -> dict[str, str]:
    """Return keys by their ids, in their order; see `Keys`.

    Raises:
        ConfigError: They are none.
    """
    spaced = [" ".join(line.split()) for line in text.strip().splitlines()]
    lines = [_LINE.sub(r"\1:\2", line) for line in spaced]
    pairs = [pair.partition(":") for pair in re.split(r"[,\s]+", "\n".join(lines)) if pair]
    keys = {name: key for name, _, key in pairs}
    if not pairs or len(keys) != len(pairs) or not all(colon for _, colon, _ in pairs):
        raise ConfigError("FLEET_KEYS must hold `id:key` pairs with different ids")
    for name, key in keys.items():
        if not _KEY_ID.fullmatch(name) or len(key) < _SHORTEST_KEY:
            raise ConfigError(
                "FLEET_KEYS: each pair needs an id of up to 32 letters, digits, - or _, "
                f"and a key of at least {_SHORTEST_KEY} characters"
            )
    return keys


def _signature(key: str, purpose: str, text: str) -> str:
    # Passwords begin with a client id, which has no line end: a signature is never a password.
    digest = hmac.new(key.encode(), f"{purpose}\n{text}".encode(errors="surrogatepass"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode().rstrip("=")
