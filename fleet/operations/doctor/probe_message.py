"""Test messages of the doctor, each with a random mark; workers and devices ignore them."""

import json
import secrets
from collections.abc import Callable

from fleet.wire.mqtt.packets import Publish


def new_probe_message() -> bytes:
    """Return a new message, of a type that neither workers nor devices know."""
    return json.dumps({"type": "doctor", "mark": secrets.token_hex(8)}).encode()


def equal_to(sent: bytes) -> Callable[[Publish], bool]:
    """Return a condition that only this message meets."""
    return lambda message: message.payload == sent
