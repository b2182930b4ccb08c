"""The time in the bootstrap answer."""

from datetime import datetime

from fleet.ground.local_time import own_offset
from fleet.wire.bootstrap import ServerTime


def server_time(timezone: str, default: str, now: datetime) -> ServerTime:
    """Return the time for a device's clock; `default` counts where its own time zone is empty or unknown."""
    return ServerTime(timestamp=int(now.timestamp() * 1000), timezone_offset=own_offset(timezone, default, now))
