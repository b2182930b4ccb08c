"""The bearer tokens of operators: a file with their hashes.

A line is `NAME SCOPE[,SCOPE…] HASH`; the hash is SHA-256 in hex. A token has 256 random bits, so a slower hash is not
needed. Empty lines and lines that begin with `#` are skipped.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from fleet.adapters.files.watched_file import WatchedFile, write_whole
from fleet.core import permissions
from fleet.ground.errors import ConfigError

DEVICES_INPUT: Final = "devices:input"
GATEWAY_CONNECT: Final = "gateway:connect"
MEANINGS: Final = {
    DEVICES_INPUT: "Enter text for devices, and read the answers to it.",
    GATEWAY_CONNECT: "Be a client of the gateway.",
    **permissions.MEANINGS,
}
"""All scopes, those of api and gateway first, and what they allow."""
SCOPES: Final = tuple(MEANINGS)

_PREFIX = "flt_"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LINE = re.compile(r"([A-Za-z0-9._-]{1,64}) ([a-z]+:[a-z]+(?:,[a-z]+:[a-z]+)*) ([0-9a-f]{64})")
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Operator:
    """The owner of a token, and its scopes."""

    name: str
    scopes: frozenset[str]
    digest: str
    """SHA-256 of the token, in hex."""

    @property
    def line(self) -> str:
        return f"{self.name} {','.join(sorted(self.scopes))} {self.digest}\n"


class OperatorTokens:
    """The operators of a file, which may change at any time; without the file there are none.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path)
        self._operators: tuple[Operator, ...] = ()

    def find(self, token: str) -> Operator | None:
        """Return the operator of a token, or None; compares in constant time.

        Raises:
            ConfigError: The file cannot be read, or is wrong; then all tokens are refused.
        """
        self._follow()
        given = digest_of(token)
        found = [operator for operator in self._operators if hmac.compare_digest(operator.digest, given)]
        return found[0] if found else None

    def read(self) -> tuple[Operator, ...]:
        """Return all operators.

        Raises:
            ConfigError: The file cannot be read, or is wrong.
        """
        self._follow()
        return self._operators

    def add(self, name: str, scopes: frozenset[str]) -> str:
        """Add an operator, with a numbered name if it is empty; return the token, which is stored nowhere.

        Raises:
            ConfigError: The name is taken or invalid, a scope is unknown, or the file cannot be read or written.
        """
        operators = self.read()
        unknown = ", ".join(sorted(scopes - set(SCOPES)))
        if unknown or not scopes:
            raise ConfigError(f"unknown scope {unknown or '(none)'}; there are: {', '.join(SCOPES)}")
        taken = {operator.name for operator in operators}
        name = name or next(free for number in count(1) if (free := f"operator-{number}") not in taken)
        if not _NAME.fullmatch(name):
            raise ConfigError("a name has up to 64 letters, digits, dots, - and _")
        if name in taken:
            raise ConfigError(f"there is an operator {name} already; revoke the token first")
        token = _PREFIX + secrets.token_urlsafe(32)
        self._write((*operators, Operator(name, scopes, digest_of(token))))
        return token

    def remove(self, name: str) -> bool:
        """Revoke an operator's token; return whether there was one.

        Raises:
            ConfigError: The file cannot be read or written.
        """
        operators = self.read()
        left = tuple(operator for operator in operators if operator.name != name)
        if len(left) < len(operators):
            self._write(left)
        return len(left) < len(operators)

    def _follow(self) -> None:
        if not self._file.path.exists():
            self._operators = ()
            return
        try:
            text = self._file.news()
            if text is not None:
                self._operators = ()
                self._operators = parse(text)
        except ConfigError:
            # A revocation may be missing: until the file can be read again, all tokens are refused.
            self._operators, self._file = (), WatchedFile(self._file.path)
            raise

    def _write(self, operators: tuple[Operator, ...]) -> None:
        path = self._file.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, "".join(operator.line for operator in operators), _MODE)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error


def tokens_path(named: Path | None, data_dir: Path) -> Path:
    """Return the file with the operators' tokens: FLEET_OPERATOR_TOKENS_FILE, else one in FLEET_DATA_DIR."""
    return named or data_dir / "operator-tokens"


def parse(text: str) -> tuple[Operator, ...]:
    """Return the operators of a file's text.

    Raises:
        ConfigError: A line is invalid.
    """
    operators: list[Operator] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = " ".join(line.split())
        if not words or words.startswith("#"):
            continue
        found = _LINE.fullmatch(words)
        if found is None:
            raise ConfigError(f"operator tokens, line {number}: must be NAME SCOPE[,SCOPE] and a hash of 64 hex digits")
        operators.append(Operator(found[1], frozenset(found[2].split(",")), found[3]))
    return tuple(operators)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
