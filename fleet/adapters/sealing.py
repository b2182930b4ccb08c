"""Keys of providers, encrypted: SQL and Redis only hold them sealed (docs/adr/0041-agents.md)."""

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from pydantic import SecretStr

from fleet.ground.errors import ConfigError


class Sealer:
    """Encrypts with the first key; decrypts what any of the keys has encrypted.

    Args:
        keys: Fernet keys, separated by commas; empty for none: then nothing can be sealed.

    Raises:
        ConfigError: One of them is no Fernet key. The message does not show it.
    """

    def __init__(self, keys: str = "") -> None:
        try:
            found = [Fernet(key.strip()) for key in keys.split(",") if key.strip()]
        except ValueError as error:
            raise ConfigError("FLEET_SECRET_KEYS: a key is not 32 bytes in URL-safe base64") from error
        self._keys: Sequence[Fernet] = found

    @classmethod
    def of(cls, setting: SecretStr | None) -> "Sealer":
        """Return the sealer of the setting FLEET_SECRET_KEYS.

        Raises:
            ConfigError: See `Sealer`.
        """
        return cls(setting.get_secret_value() if setting is not None else "")

    def seal(self, secret: str) -> str:
        """Return a secret encrypted; an empty one stays empty.

        Raises:
            ConfigError: There is no key.
        """
        return self._multi().encrypt(secret.encode()).decode() if secret else ""

    def unseal(self, sealed: str) -> str:
        """Return a secret in clear; an empty one stays empty.

        Raises:
            ConfigError: There is no key, or none of them has encrypted it.
        """
        if not sealed:
            return ""
        try:
            return self._multi().decrypt(sealed).decode()
        except InvalidToken as error:
            raise ConfigError("FLEET_SECRET_KEYS: none of the keys has encrypted this secret") from error

    def _multi(self) -> MultiFernet:
        if not self._keys:
            raise ConfigError("FLEET_SECRET_KEYS is missing: it encrypts the keys of providers")
        return MultiFernet(self._keys)


def new_key() -> str:
    """Return a new key."""
    return Fernet.generate_key().decode()
