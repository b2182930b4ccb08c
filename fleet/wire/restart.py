"""Asking a device to restart: `self.reboot`, a tool that firmware has for its users and that lists do not show."""

import secrets

from fleet.wire.jsonrpc import LARGEST_ID
from fleet.wire.messages import CallToolCommand


def restart() -> CallToolCommand:
    """Return the command, with an id of its own; nobody waits for its answer."""
    return CallToolCommand(secrets.randbelow(LARGEST_ID // 2) + 1, "self.reboot")
