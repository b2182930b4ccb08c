"""After a restart of the broker mark all devices offline that were connected before it."""

import asyncio
import logging
from collections.abc import Callable

from pydantic import BaseModel, Field, ValidationError

from fleet.adapters.redis.devices.devices import Devices
from fleet.ground.metrics import broker as metrics
from fleet.roles.worker.ownership.shard import Shard

log = logging.getLogger(__name__)

_AT_ONCE = 100
_PAUSE = 0.02
"""Seconds between two batches, so that other tasks run."""


class _Boot(BaseModel):
    """The message of the fleet plugin of Mosquitto: the broker's start, on the clock of presence epochs."""

    epoch: int = Field(ge=0, lt=2**53)


async def mark_lost_devices(
    devices: Devices, shard: Shard, payload: bytes, on_offline: Callable[[Shard, str, str], None]
) -> None:
    """Mark the shard's devices offline that connected before the broker started.

    Args:
        devices: The records of devices.
        shard: The shard.
        payload: The plugin's message.
        on_offline: Called with the shard, a device, and the id of its session or an empty string.
    """
    try:
        epoch = _Boot.model_validate_json(payload).epoch
    except ValidationError:
        metrics.malformed.add("boot")
        log.warning("malformed start message of the broker")
        return
    count = 0
    while gone := await devices.outdate(shard.owner, shard.number, epoch, _AT_ONCE):
        for mac, session in gone:
            on_offline(shard, mac, session)
        count += len(gone)
        await asyncio.sleep(_PAUSE)
    if count:
        log.warning("devices lost with the broker", extra={"shard": shard.number, "devices": count})
