"""Call a device's tools: begin the call in Redis, publish it once, await the answer, end it with exactly one outcome.

The turn does not wait for the answer of a control call (`CallTerms.control`): it goes on after the publishing.
"""

import asyncio
import functools
import json
import logging
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

from fleet.adapters.redis.devices.reports import Reports
from fleet.adapters.redis.sessions.calls import (
    CallBegun,
    CallingOperator,
    CallingTurn,
    CallKnown,
    CallRefused,
    CallTable,
)
from fleet.core.controls import SENT, failure_report
from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import Overloaded, Unavailable
from fleet.roles.worker.calls.call_terms import CallTerms
from fleet.roles.worker.calls.operator_ends import OperatorEnds
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.pending import PendingCalls, wait_for_answer
from fleet.wire.mcp import ToolResult, clip, parse_result
from fleet.wire.messages import CallToolCommand, ResponseEvent
from fleet.wire.operator_calls import IN_SESSION, LATE, OFFLINE

log = logging.getLogger(__name__)

Status = Literal["ok", "error", "not_sent", "unknown"]

_BUSY = "the device has too many calls to do"
_TOO_OFTEN = "the device is called too often; wait before another try"
_OVER = "the user has said something else meanwhile"
_REFUSED = {"offline": OFFLINE, "in session": IN_SESSION, "over": _OVER, "late": LATE}
_NO_ANSWER = "the device did not answer in time"
_GONE = "the device disconnected before it answered"
_NOT_INSTALLED = "the firmware was not installed; the device goes on with the one that it has"
_LEFT = "the device was told to and does it now; it goes offline for that and confirms nothing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, and its text for the model."""

    status: Status
    text: str

    def for_model(self) -> str:
        match self.status:
            case "ok":
                return self.text
            case "error":
                return f"error: {self.text}"
            case "not_sent":
                return f"error: not done, {self.text}"
            case "unknown":
                return f"error: unknown whether it was done, {self.text}"

    def write(self) -> str:
        """Return the outcome as it is stored."""
        return json.dumps([self.status, self.text], ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> "Outcome":
        """Return an outcome from what `write` returned."""
        status, words = json.loads(text)
        return cls(status, words)


_UNANSWERED, _DISCONNECTED = Outcome("unknown", _NO_ANSWER), Outcome("unknown", _GONE)


class DeviceCalls:
    """Calls tools of the devices of this worker's shards.

    Args:
        calls: The calls in Redis.
        reports: For failures that a later turn must know.
        rate: Limit of calls to one device.
        counts: Count refusals.
    """

    def __init__(self, calls: CallTable, reports: Reports, rate: Rate, counts: Counter[str]) -> None:
        self._calls = calls
        self._reports = reports
        self._rate = Buckets(rate)
        self._counts = counts
        self._pending = PendingCalls(_DISCONNECTED)
        self._leaving = PendingCalls(_DISCONNECTED)
        """Calls whose answer is that the device goes offline."""
        self.awaited = self._pending.devices, self._leaving.devices
        """The devices of which calls are awaited here."""
        self._ends = OperatorEnds()

    async def call(
        self,
        shard: Shard,
        mac: str,
        command: CallToolCommand,
        terms: CallTerms,
        sent: asyncio.Future[Outcome] | None = None,
    ) -> Outcome:
        """Run a tool at most once for one idempotency key; `command.id` is replaced.

        A call that any worker has begun before is not sent again: its outcome is awaited or returned. `sent` is set
        when the call is published.

        Raises:
            Fenced: Another worker owns the shard; nothing was sent.
            Unavailable: Redis is away; nothing was sent.
        """
        outcome = await self._call(shard, mac, command, terms, sent)
        if terms.fails_if_answered and outcome.status == "ok" and outcome.text != _LEFT:
            return Outcome("error", _NOT_INSTALLED)
        return outcome

    async def _call(
        self,
        shard: Shard,
        mac: str,
        command: CallToolCommand,
        terms: CallTerms,
        sent: asyncio.Future[Outcome] | None,
    ) -> Outcome:
        owner = shard.owner
        caller = CallingOperator(owner, terms.call_id, terms.idle) if terms.operator else CallingTurn(owner, terms.turn)
        begun = await self._calls.begin(mac, terms.idempotency, terms.seconds, caller, command.name)
        log.debug("call begun", extra={"call": terms.call_id, "verdict": type(begun).__name__})
        match begun:
            case CallRefused(reason):
                return Outcome("not_sent", _REFUSED.get(reason, _BUSY))
            case CallKnown(_, "done"):
                return Outcome.read(begun.result)
            case CallKnown(number, "pending"):
                log.info("call was begun before", extra={"id": number, "seconds": begun.seconds})
                pending = CallToolCommand(number, command.name)
                return await self._run(shard, mac, pending, replace(terms, seconds=begun.seconds), sent, fresh=False)
            case CallKnown(_, "not sent"):
                return Outcome("not_sent", OFFLINE)
            case CallKnown():
                left = terms.leaves and not terms.operator
                return Outcome("ok", _LEFT) if left else Outcome("unknown", _NO_ANSWER)
            case CallBegun(number) if not terms.operator and self._rate.take(mac, asyncio.get_running_loop().time()):
                # Apply the limit after `begin`: a call that was begun before may have been published, and must not be
                # reported as not sent.
                self._counts["call: too often"] += 1
                log.warning("call refused", extra={"call": terms.call_id, "reason": "too often"})
                await self._calls.give_up(mac, number, sent=False)
                return Outcome("not_sent", _TOO_OFTEN)
            case CallBegun(number):
                request = CallToolCommand(number, command.name, command.arguments, command.session)
                return await self._run(shard, mac, request, terms, sent, fresh=True)

    def awaits(self, mac: str, number: str) -> bool:
        """Whether a call is awaited here."""
        return self._pending.awaits(mac, number) or self._leaving.awaits(mac, number)

    def take(self, mac: str, answer: ResponseEvent) -> asyncio.Future[bool] | None:
        """Begin to take the answer to a call that is awaited here, without a task; None if `answer` must take it."""
        if answer.plain or not self.awaits(mac, answer.id):
            return None
        outcome = _outcome(answer)
        completing = self._complete(mac, answer.id, outcome)
        completing.add_done_callback(functools.partial(self._resolve, mac, answer.id, outcome))
        return completing

    async def answer(self, shard: Shard, mac: str, answer: ResponseEvent) -> bool:
        """Take a device's answer; return False if it is late or repeated, or belongs to no call."""
        outcome = _outcome(answer)
        completing = self._complete(mac, answer.id, outcome)
        fresh = await completing
        awaited = self._resolve(mac, answer.id, outcome, completing)
        if fresh and answer.plain and not awaited:
            # The worker or the turn that waited for the call has ended.
            await self._report(shard, mac, "", outcome)
        return fresh

    def _complete(self, mac: str, number: str, outcome: Outcome) -> asyncio.Future[bool]:
        log.debug("call answered", extra={"id": number[:32]})
        end = self._ends.find(mac, number, outcome.status, outcome.text)
        return self._calls.begin_completing(mac, number, outcome.write(), end)

    def _resolve(self, mac: str, number: str, outcome: Outcome, completing: asyncio.Future[bool]) -> bool:
        """Let the call go on that waits for an answer which is recorded now; return whether there is one."""
        if completing.cancelled() or completing.exception() is not None:
            return False
        if completing.result():
            log.debug("call completed", extra={"id": number})
        return self._pending.resolve(mac, number, outcome) or self._leaving.resolve(mac, number, outcome)

    def disconnect(self, mac: str) -> None:
        """Fail the calls of a device that went offline."""
        self._pending.disconnect(mac)
        self._leaving.disconnect(mac)

    def reconnect(self, mac: str) -> None:
        """Complete the calls that make a device go offline: it has reconnected. It may still answer other calls."""
        self._leaving.disconnect(mac)

    async def _run(
        self,
        shard: Shard,
        mac: str,
        request: CallToolCommand,
        terms: CallTerms,
        sent: asyncio.Future[Outcome] | None,
        *,
        fresh: bool,
    ) -> Outcome:
        """Publish a fresh call, and wait as its terms say."""
        if not terms.control:
            return await self._await(shard, mac, request, terms, sent, fresh=fresh)
        sent = sent or asyncio.get_running_loop().create_future()
        if not fresh:
            sent.set_result(Outcome("ok", SENT))
        shard.spawn(f"control {mac}", self._await_control(shard, mac, request, terms, sent, fresh=fresh))
        return await sent

    async def _await_control(
        self,
        shard: Shard,
        mac: str,
        request: CallToolCommand,
        terms: CallTerms,
        sent: asyncio.Future[Outcome],
        *,
        fresh: bool,
    ) -> None:
        """Wait for the end of a control call in the background; set `sent` after its publishing."""
        try:
            outcome = await self._await(shard, mac, request, terms, sent, fresh=fresh)
            if not sent.done():
                sent.set_result(outcome)
                return
        finally:
            sent.cancel()
        about = {"tool": request.name, "outcome": outcome.status, "pii": {"result": outcome.text}}
        log.info("control ended", extra=about)
        await self._report(shard, mac, request.name, outcome)

    async def _report(self, shard: Shard, mac: str, tool: str, outcome: Outcome) -> None:
        """Report a failure to the next turn."""
        if outcome.status == "error":
            await self._reports.add(shard.owner, mac, failure_report(tool, outcome.text))

    async def _await(
        self,
        shard: Shard,
        mac: str,
        request: CallToolCommand,
        terms: CallTerms,
        sent: asyncio.Future[Outcome] | None = None,
        *,
        fresh: bool,
    ) -> Outcome:
        """Publish a fresh call and wait for its answer; set `sent` after the publishing."""
        number = request.id
        with (self._leaving if terms.leaves else self._pending).register(mac, number) as waiting:
            if fresh:
                try:
                    shard.publish(mac, request, terms.dialect)
                except (Unavailable, Overloaded):
                    await self._calls.give_up(mac, number, sent=False)
                    return Outcome("not_sent", OFFLINE)
                log.debug("call published", extra={"call": terms.call_id, "id": number})
            elif (known := await self._calls.result(mac, number)) is not None:
                return Outcome.read(known)  # it was answered before this future was registered
            if sent is not None and not sent.done():
                sent.set_result(Outcome("ok", SENT))
            with self._ends.awaiting(mac, number, terms.end):
                outcome = await wait_for_answer(waiting, terms.seconds, _UNANSWERED)
        if outcome is not _UNANSWERED and outcome is not _DISCONNECTED:
            return outcome
        if terms.leaves and (outcome is _DISCONNECTED or not terms.operator):
            outcome = Outcome("ok", _LEFT)
            end = self._calls.complete(mac, str(number), outcome.write())
        else:
            end = self._calls.give_up(mac, number, sent=True)
        if await end:
            return outcome
        # Another worker took the answer, or `CallExpirer` ended the call first.
        known = await self._calls.result(mac, number)
        return outcome if known is None else Outcome.read(known)


def _outcome(answer: ResponseEvent) -> Outcome:
    if answer.error is not None:
        return Outcome("error", clip(answer.error))
    if answer.plain:
        plain = answer.result if isinstance(answer.result, str) else json.dumps(answer.result, ensure_ascii=False)
        return Outcome("ok", clip(plain))
    result: ToolResult = parse_result(answer.result)
    return Outcome("error" if result.failed else "ok", result.text)
