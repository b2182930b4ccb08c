"""An announcement under the record of an operator's call: begun once, ended once, whichever worker owns the shard."""

from collections.abc import Awaitable, Callable
from typing import Final

from fleet.adapters.redis.sessions.calls import (
    CallBegun,
    CallingOperator,
    CallKnown,
    CallRefused,
    CallTable,
    OperatorEnd,
)
from fleet.core.tool_kinds import kind_of
from fleet.roles.worker.calls.device_calls import Outcome
from fleet.wire.announcements import TOOL
from fleet.wire.operator_calls import LATE, OFFLINE

_REFUSED: Final = {"offline": OFFLINE, "late": LATE, "over": "it has ended already"}
_BUSY: Final = "the device has too much to do"


async def deliver_once(calls: CallTable, mac: str, end: OperatorEnd, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Do the work of an operator's call, and end it; `work` goes on with what another owner of the shard began.

    Raises:
        Fenced: Another worker owns the shard.
        Unavailable: Redis is away; a retry goes on.
    """
    caller = CallingOperator(end.owner, end.call)
    match await calls.begin(mac, f"operator:{end.call}", kind_of(TOOL).seconds, caller, TOOL):
        case CallBegun(number) | CallKnown(number, "pending"):
            outcome = await work()
            if outcome.status == "not_sent":
                await calls.give_up(mac, number, sent=False)
            else:
                end.state, end.text = outcome.status, outcome.text
                await calls.complete(mac, str(number), outcome.write(), end)
            return outcome
        case CallKnown(_, "done", result):
            return Outcome.read(result)
        case CallKnown():
            return Outcome("unknown", "its time was over")
        case CallRefused(reason):
            return Outcome("not_sent", _REFUSED.get(reason, _BUSY))
