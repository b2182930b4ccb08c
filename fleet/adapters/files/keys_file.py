"""The keys that `fleet up` creates and keeps."""

import logging
import os
import secrets
from pathlib import Path

from fleet.adapters.sealing import new_key
from fleet.ground.errors import ConfigError
from fleet.wire.identity import CredentialKeys

log = logging.getLogger(__name__)

_NAME = "keys"
_SECRETS = "secret_keys"
_OTHERS = 0o077


def keys_path(data_dir: Path) -> Path:
    """Return the path of the file `keys`; create the file if it is missing.

    Raises:
        ConfigError: As `load_or_make_keys`.
    """
    load_or_make_keys(data_dir)
    return data_dir / _NAME


def load_or_make_secret_keys(data_dir: Path) -> str:
    """Return the text of the file `secret_keys` for `Sealer`; create it as `load_or_make_keys` creates its file.

    Raises:
        ConfigError: The file cannot be read or written.
    """
    path = data_dir / _SECRETS
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make(path, new_key())
        return ",".join(path.read_text().split())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def load_or_make_keys(data_dir: Path) -> str:
    """Return the text of the file `keys` for `CredentialKeys`.

    If it is missing, create it with a random key, readable by its owner only.

    Raises:
        ConfigError: The file cannot be read or written, or holds no keys.
    """
    path = data_dir / _NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make(path, f"k1:{secrets.token_urlsafe(32)}")
        text = path.read_text()
        if path.stat().st_mode & _OTHERS:
            log.warning("keys can be read by others", extra={"file": str(path)})
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: no text") from error
    try:
        CredentialKeys(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return text


def _make(path: Path, key: str) -> None:
    """Write a new key atomically; of several concurrent processes exactly one succeeds."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink(missing_ok=True)
