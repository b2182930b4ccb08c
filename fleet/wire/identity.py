"""Who may connect: client ids, user names with a key id, and passwords derived from a shared key.

password = base64(HMAC-SHA256(key, client_id + "|" + username)), so that a password is worth nothing for another client
id and no password is ever stored. The user name is `<kind>.<key id>`: kind `device` (client id: a canonical MAC) or
`service` (client id: begins with `fleet-`), so that keys can rotate. A device's user name goes on with
`.<policy>.<generation>`: under which policy bootstrap issued it, and a number that rises when earlier credentials of
that MAC must count no longer. The form without both comes from versions before generations, and means generation 0.
mosquitto/identity.c has the same rules.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from fleet.ground.errors import ConfigError
from fleet.wire.topics import canonical_mac

Kind = Literal["device", "service"]
Policy = Literal["open", "first", "code", "closed"]
"""What bootstrap demanded before it issued credentials; `open` demands nothing."""

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
    """What a client puts into CONNECT."""

    client_id: str
    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Username:
    """What a user name says; `policy` is empty where it does not say, and then the generation is 0.

    Credentials issued under `open` prove nothing and have generation 0; all others have 1 or more.
    """

    kind: Kind
    key_id: str
    policy: Policy | Literal[""] = ""
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Minima:
    """The lowest generation that counts: of a MAC, and of every MAC that has no entry."""

    default: int = 0
    macs: Mapping[str, int] = field(default_factory=dict)

    def of(self, mac: str) -> int:
        """Return the lowest generation that counts for a canonical MAC."""
        return self.macs.get(mac, self.default)


def parse_username(username: str) -> Username | None:
    """Return what a user name says, or None when it is not one of ours. The text proves nothing by itself."""
    found = _USERNAME.fullmatch(username)
    if found is None:
        return None
    kind, generation = cast("Kind", found[1]), int(found[5] or 0)
    policy = cast("Policy", found[3] or found[4] or "")
    if generation > LARGEST_GENERATION or (kind == "service" and policy):
        return None
    return Username(kind, found[2], policy, generation)


def format_username(name: Username) -> str:
    """Return the text of a user name.

    Raises:
        ValueError: There is no such user name: `open` with a generation, another policy without one, a service with
            either, or a number out of range.
    """
    tail = f".{name.policy}.{name.generation}" if name.policy else ""
    text = f"{name.kind}.{name.key_id}{tail}"
    if parse_username(text) != name:
        raise ValueError(f"no such user name: {name}")
    return text


def password(key: str, client_id: str, username: str) -> str:
    """Return the password of a client id and user name under one key."""
    digest = hmac.new(key.encode(), f"{client_id}|{username}".encode(errors="surrogatepass"), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class CredentialKeys:
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
        self._minima = Minima()

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

    def require(self, minima: Minima) -> None:
        """Refuse devices with a lower generation from now on, and let in those with this one."""
        self._minima = minima

    def issue(
        self, kind: Kind, client_id: str, *, policy: Policy | Literal[""] = "", generation: int = 0
    ) -> Credentials:
        """Return credentials for a client id under the first key.

        Args:
            kind: What the client is.
            client_id: A device's canonical MAC; a service's begins with `fleet-`.
            policy: Of a device: under which policy it is given them. Without one the user name has the old form.
            generation: 0 under `open`, 1 to 2**31 - 1 under every other policy.

        Raises:
            ValueError: The generation is not one of the policy's.
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
        """Whether credentials that are genuine count: the client is not revoked, nor the generation below the minimum.

        None is a user name that is not ours.
        """
        if client_id in self._revoked or name is None:
            return False
        return name.kind == "service" or name.generation >= self._minima.of(client_id)

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
    """Return keys by their ids, in their order; see `CredentialKeys`.

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
