"""The exception tree.

FleetError
├── ConfigError        a setting is missing, unknown or contradicts another: shown to the operator, exit code 2
├── Unavailable        something outside does not answer (broker, Redis, provider); a retry may help
│   ├── SlowQuery      the database took too long for a query, and was stopped
│   └── ProviderError  a model endpoint refused or failed; `retryable` says whether the same request may succeed
│       └── ProviderTimeout   it sent nothing for too long
├── Fenced             this process no longer owns the shard that it tried to write
└── Overloaded         a bounded queue is full

Failures of tools, bad frames and late answers are values, not exceptions: see `fleet.wire.messages`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet import DISTRIBUTION


class FleetError(Exception):
    """The base of all errors that fleet raises itself."""


class ConfigError(FleetError):
    """A setting is missing, unknown or contradicts another."""


class Unavailable(FleetError):
    """Something outside this process does not answer."""


class SlowQuery(Unavailable):
    """The database took too long for a query; the query was ended."""


class ProviderError(Unavailable):
    """A model endpoint refused or failed.

    Args:
        message: One line for the log: the endpoint and its failure. Holds no speech and no key.
        retryable: Whether the same request may succeed later.
        kind: Of the metric `fleet_provider_errors`; empty if it was not counted.
    """

    def __init__(self, message: str, *, retryable: bool, kind: str = "") -> None:
        super().__init__(message)
        self.retryable = retryable
        self.kind = kind


class ProviderTimeout(ProviderError):
    """A model endpoint sent nothing for too long."""


class Fenced(FleetError):
    """This process no longer owns the shard that it tried to write."""


class Overloaded(FleetError):
    """A bounded queue is full; the message names it."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise a `ConfigError` that names the file if the block cannot write it."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def install_hint(extra: str) -> str:
    """Return how to install the packages of an extra of pyproject.toml."""
    return f"pip install '{DISTRIBUTION}[{extra}]', or scripts/setup in a checkout"
