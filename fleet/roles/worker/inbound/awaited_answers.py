"""Take the answers to awaited requests at once, without a task: those to calls are recorded together."""

import asyncio

from fleet.ground.log import fields
from fleet.ground.loop_budget import LoopBudget
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.pending import PendingCalls
from fleet.wire import dialects
from fleet.wire.json_text import parsing_cost
from fleet.wire.messages import ResponseEvent


class AwaitedAnswers:
    """Recognises them among the messages of devices.

    Args:
        calls: Of this worker.
        requests: Other requests, whose answers go to memory only.
        parsing: What may be parsed in one iteration of the event loop.
    """

    def __init__(self, calls: DeviceCalls, requests: PendingCalls[ResponseEvent | None], parsing: LoopBudget) -> None:
        self._calls = calls
        self._requests = requests
        self._parsing = parsing
        self._devices = (*calls.awaited, requests.devices)

    def take(self, mac: str, payload: bytes) -> asyncio.Future[bool] | None:
        """Begin to take the answer to a request that this worker awaits; None for every other message."""
        # Only these are read here, so that few messages of other kinds are read twice.
        called, leaving, asked = self._devices
        if mac not in called and mac not in leaving and mac not in asked:
            return None
        if not self._parsing.take_now(parsing_cost(payload), mac):
            return None
        _, event = dialects.receive(payload)
        if not isinstance(event, ResponseEvent):
            return None
        if self._requests.resolve(mac, event.id, event):
            taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            taken.set_result(False)
            return taken
        try:
            with fields(device=mac):
                return self._calls.take(mac, event)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            # Here it would end the connection; the usual way meets it again, contained.
            return None
