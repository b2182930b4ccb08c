"""The token with which commands on this machine use control: a file that only its owner can read."""

import hmac
import secrets
from pathlib import Path

from fleet.adapters.files.watched_file import write_whole
from fleet.ground.errors import writing

_NAME = "control-token"


def make_local_token(data_dir: Path) -> str:
    """Write a new token in place of the last one, and return it.

    Raises:
        ConfigError: The folder cannot be written.
    """
    path, token = data_dir / _NAME, "flt_" + secrets.token_urlsafe(32)
    with writing(path):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, token, 0o600)
    return token


def read_local_token(data_dir: Path) -> str:
    """Return the token; empty if there is none, or this user may not read it."""
    try:
        return (data_dir / _NAME).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def is_local_token(token: str, expected: str) -> bool:
    """Return whether a token is the one of this machine; compares in constant time."""
    return bool(expected) and hmac.compare_digest(token.encode("utf-8", "replace"), expected.encode())
