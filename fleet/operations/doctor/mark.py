"""Messages by which the doctor knows its own again; workers and devices ignore them."""

import json
import secrets
from collections.abc import Callable

from fleet.adapters.net.mqtt.packets import Incoming


def new_mark() -> bytes:
    """Return a message unlike any other, of a type that nobody knows."""
    return json.dumps({"type": "doctor", "mark": secrets.token_hex(8)}).encode()


def carrying(mark: bytes) -> Callable[[Incoming], bool]:
    """Return what tells whether a message is this one."""
    return lambda message: message.payload == mark
