"""Credentials: client ids, user names with a key id, and passwords derived from a shared key.

password = base64(HMAC-SHA256(key, client_id + "|" + username)). So a password is valid for one client id only, and no
password is stored. The user name is `<kind>.<key id>`; the key id makes key rotation possible. The kind is `device`
(client id: a canonical MAC) or `service` (client id: begins with `fleet-`). A device's user name has two more parts,
`.<policy>.<generation>`: the policy under which bootstrap issued it, and a number that rises when earlier credentials
of the MAC become invalid. Versions without generations issued the short form; it means generation 0.
mosquitto/identity.c has the same rules.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, cast

from fleet.ground.errors import ConfigError
from fleet.wire.topics import canonical_mac

Kind = Literal["device", "service"]
Policy = Literal["open", "first", "code", "closed"]
"""The policy of the server when bootstrap issued credentials; under `open` bootstrap checks no owner."""

LARGEST_GENERATION = 2**31 - 1

_USERNAME = re.compile(
    r"(device|service)\.([A-Za-z0-9_-]{1,32})(?:\.(?:(open)\.0|(first|code|closed)\.([1-9][0-9]{0,9})))?"
)
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_LINE = re.compile(r"^([A-Za-z0-9_-]{1,32}) ([^\s:,]+)$")
"""A line of the Mosquitto plugin's file."""
_SHORTEST_KEY = 16
_SIGNATURE_BYTES = 24


@dataclass(frozen=True, slots=True)
class Credentials:
    """The three fields with which a client logs in (CONNECT)."""

    client_id: str
    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Username:
    """The parts of a user name; in the short form `policy` is empty and the generation 0.

    Credentials issued under `open` prove no ownership and have generation 0; all others have 1 or more.
    """

    kind: Kind
    key_id: str
    policy: Policy | Literal[""] = ""
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Minima:
    """The lowest valid generation of single MACs, and the one of every MAC without an entry."""

    default: int = 0
    macs: Mapping[str, int] = field(default_factory=dict)

    def of(self, mac: str) -> int:
        """Return the lowest valid generation of a canonical MAC."""
        return self.macs.get(mac, self.default)


def parse_username(username: str) -> Username | None:
    """Return the parts of a user name, or None if it is not one of fleet's. Only the password proves it."""
    found = _USERNAME.fullmatch(username)
    if found is None:
        return None
    kind, generation = cast("Kind", found[1]), int(found[5] or 0)
    policy = cast("Policy", found[3] or found[4] or "")
    if generation > LARGEST_GENERATION or (kind == "service" and policy):
        return None
    return Username(kind, found[2], policy, generation)


@lru_cache(maxsize=1024)
def format_username(name: Username) -> str:
    """Return the text of a user name.

    Raises:
        ValueError: No user name has these parts: `open` with a generation, another policy without one, a service with
            a policy or generation, or a number out of range.
    """
    tail = f".{name.policy}.{name.generation}" if name.policy else ""
    text = f"{name.kind}.{name.key_id}{tail}"
    if parse_username(text) != name:
        raise ValueError(f"no such user name: {name}")
    return text


def password(key: str, client_id: str, username: str) -> str:
    """Return the password of a client id and user name under one key."""
    digest = hmac.digest(key.encode(), f"{client_id}|{username}".encode(errors="surrogatepass"), "sha256")
    return base64.b64encode(digest).decode()


class CredentialKeys:
    """The valid keys, the revoked devices and the lowest valid generations; the first key signs, all keys verify.

    A process has one object of this class, so that a change takes effect everywhere in it.

    Args:
        text: `id:key` pairs separated by commas, white space or line ends, e.g. `k2:…,k1:…`; or the lines of the
            Mosquitto plugin's file, `id key`.

    Raises:
        ConfigError: No pair, a bad key id, a key id twice, or a key shorter than 16 characters.
    """

    def __init__(self, text: str) -> None:
        self._keys = parse_keys(text)
        self._revoked: frozenset[str] = frozenset()
        self._minima = Minima()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all valid keys, the signing one first."""
        return tuple(self._keys)

    @property
    def revoked(self) -> frozenset[str]:
        """The devices whose credentials are invalid."""
        return self._revoked

    def replace(self, text: str) -> None:
        """Replace all keys.

        Raises:
            ConfigError: See the class; the present keys stay in use.
        """
        self._keys = parse_keys(text)

    def revoke(self, macs: Iterable[str]) -> None:
        """Replace the set of revoked devices."""
        self._revoked = frozenset(macs)

    def require(self, minima: Minima) -> None:
        """Replace the lowest valid generations."""
        self._minima = minima

    def issue_to_device(self, mac: str, policy: Policy, generation: int) -> Credentials:
        """Return the credentials of a device that is admitted under a policy.

        Under an open policy a generation is given only where another policy cut earlier passwords: it would not count
        without one.
        """
        under: Policy = "first" if policy == "open" and generation else policy
        return self.issue("device", mac, policy=under, generation=generation)

    def issue(
        self, kind: Kind, client_id: str, *, policy: Policy | Literal[""] = "", generation: int = 0
    ) -> Credentials:
        """Return credentials for a client id under the first key.

        Args:
            kind: Of the client.
            client_id: A device's canonical MAC; a service's begins with `fleet-`.
            policy: For a device: the policy under which it gets them. Without one the user name has the short form.
            generation: 0 under `open`, 1 to 2**31 - 1 under every other policy.

        Raises:
            ValueError: The policy does not allow this generation.
        """
        newest = next(iter(self._keys))
        username = format_username(Username(kind, newest, policy, generation))
        return Credentials(client_id, username, password(self._keys[newest], client_id, username))

    def verify(self, client_id: str, username: str, given: str) -> Kind | None:
        """Return the kind of client that these credentials prove, or None; compares in constant time."""
        name = parse_username(username)
        key = self._keys.get(name.key_id) if name else None
        if name is None or key is None or not given.isascii():
            return None
        if not hmac.compare_digest(password(key, client_id, username), given) or not self.admit(client_id, name):
            return None
        if name.kind == "device":
            return "device" if canonical_mac(client_id) == client_id else None
        return "service" if client_id.startswith("fleet-") else None

    def admit(self, client_id: str, name: Username | None) -> bool:
        """Whether genuine credentials are valid: the client is not revoked, its generation not below the minimum.

        Args:
            client_id: Of the client.
            name: None if the user name is not one of fleet's.
        """
        if client_id in self._revoked or name is None:
            return False
        return name.kind == "service" or name.generation >= self._minima.of(client_id)

    def sign(self, purpose: str, text: str) -> tuple[str, str]:
        """Return the id of the first key, and its signature of a text as URL-safe text; see `check`."""
        newest = next(iter(self._keys))
        return newest, _signature(self._keys[newest], purpose, text)

    def check(self, key_id: str, purpose: str, text: str, given: str) -> bool:
        """Whether a signature of `sign` is genuine; compares in constant time."""
        key = self._keys.get(key_id)
        return key is not None and hmac.compare_digest(_signature(key, purpose, text).encode(), given.encode())

    def as_file(self) -> str:
        """Return the keys as lines `id key` for the Mosquitto plugin, the signing one first."""
        return "".join(f"{name} {key}\n" for name, key in self._keys.items())


def parse_keys(text: str) -> dict[str, str]:
    """Return keys by their ids, in the order of the text; see `CredentialKeys`.

    Raises:
        ConfigError: The text does not hold valid keys.
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
    # The signed text has a line end, which no client id has. So no signature can serve as a password.
    digest = hmac.new(key.encode(), f"{purpose}\n{text}".encode(errors="surrogatepass"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode().rstrip("=")
