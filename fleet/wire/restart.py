"""The restart of a device: `self.reboot`, a user-only tool of firmware that tool lists do not show."""

import secrets

from fleet.wire.jsonrpc import LARGEST_ID
from fleet.wire.messages import CallToolCommand


def restart() -> CallToolCommand:
    """Return the command, with a new id; its answer is not awaited."""
    return CallToolCommand(secrets.randbelow(LARGEST_ID // 2) + 1, "self.reboot")
