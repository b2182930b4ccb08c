"""Take the answers to awaited calls at once, without a task, so that those that come together are recorded together."""

import asyncio

from fleet.ground.log import fields
from fleet.ground.loop_budget import LoopBudget
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.wire import dialects
from fleet.wire.json_text import parsing_cost
from fleet.wire.messages import ResponseEvent


class AwaitedAnswers:
    """Recognises them among the messages of devices.

    Args:
        calls: Of this worker.
        parsing: What may be parsed in one iteration of the event loop.
    """

    def __init__(self, calls: DeviceCalls, parsing: LoopBudget) -> None:
        self._calls = calls
        self._parsing = parsing

    def take(self, mac: str, payload: bytes) -> asyncio.Future[bool] | None:
        """Begin to take the answer to a call that this worker awaits; None for every other message."""
        # Only these are read here, so that no message of another kind is read twice.
        if not self._calls.awaits(mac) or not self._parsing.take_now(parsing_cost(payload), mac):
            return None
        _, event = dialects.receive(payload)
        if not isinstance(event, ResponseEvent):
            return None
        try:
            with fields(device=mac):
                return self._calls.take(mac, event)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            # Here it would end the connection; the usual way meets it again, contained.
            return None
