"""Who may connect: client ids, user names with a key id, and passwords derived from a shared key.

password = base64(HMAC-SHA256(key, client_id + "|" + username)), so that a password is worth nothing for another client
id and no password is ever stored. The user name is `<kind>.<key id>`: kind `device` (client id: a canonical MAC) or
`service` (client id: begins with `fleet-`), so that keys can rotate.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Literal

from fleet.errors import ConfigError
from fleet.wire.topics import canonical_mac

Kind = Literal["device", "service"]

_USERNAME = re.compile(r"(device|service)\.([A-Za-z0-9_-]{1,32})")
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_SHORTEST_KEY = 16


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
    """The keys that are valid now; the first one signs, all of them verify.

    Args:
        text: `id:key` pairs separated by commas, white space or line ends, e.g. `k2:…,k1:…`.

    Raises:
        ConfigError: No pair, a bad key id, a key id twice, or a key shorter than 16 characters.
    """

    def __init__(self, text: str) -> None:
        pairs = [pair.partition(":") for pair in re.split(r"[,\s]+", text.strip()) if pair]
        self._keys = {name: key for name, _, key in pairs}
        if not pairs or len(self._keys) != len(pairs) or not all(colon for _, colon, _ in pairs):
            raise ConfigError("FLEET_KEYS must hold `id:key` pairs with different ids")
        for name, key in self._keys.items():
            if not _KEY_ID.fullmatch(name) or len(key) < _SHORTEST_KEY:
                raise ConfigError(
                    "FLEET_KEYS: each pair needs an id of up to 32 letters, digits, - or _, "
                    f"and a key of at least {_SHORTEST_KEY} characters"
                )
        self._newest = pairs[0][0]

    def issue(self, kind: Kind, client_id: str) -> Credentials:
        """Return credentials for a client id under the newest key."""
        username = f"{kind}.{self._newest}"
        return Credentials(client_id, username, password(self._keys[self._newest], client_id, username))

    def verify(self, client_id: str, username: str, given: str) -> Kind | None:
        """Return the kind of client that these credentials prove, or None; compares in constant time."""
        found = _USERNAME.fullmatch(username)
        key = self._keys.get(found[2]) if found else None
        if found is None or key is None or not given.isascii():
            return None
        if not hmac.compare_digest(password(key, client_id, username), given):
            return None
        if found[1] == "device":
            return "device" if canonical_mac(client_id) == client_id else None
        return "service" if client_id.startswith("fleet-") else None

    def as_file(self) -> str:
        """Return the keys as the lines `id key` that the Mosquitto plugin reads, the newest first."""
        return "".join(f"{name} {key}\n" for name, key in self._keys.items())
