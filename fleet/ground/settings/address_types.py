"""Types of settings that are addresses: a wrong one is refused before anything starts. The text stays as written."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def _http_url(value: str) -> str:
    return _checked(value, "http", "https")


def _broker_url(value: str) -> str:
    return _checked(value, "mqtt", "mqtts")


def _checked(value: str, *schemes: str) -> str:
    parts = urlsplit(value)
    # Reading the port checks it.
    if parts.scheme not in schemes or not parts.hostname or parts.port == 0:
        raise ValueError(f"must be {' or '.join(f'{scheme}://…' for scheme in schemes)}, with a host")
    return value


HttpUrl = Annotated[str, AfterValidator(_http_url)]
BrokerUrl = Annotated[str, AfterValidator(_broker_url)]
