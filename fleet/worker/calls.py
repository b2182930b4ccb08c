"""Calling a device's tools: begun in Redis, published once, awaited, ended in exactly one outcome."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fleet.errors import Overloaded, Unavailable
from fleet.store.calls import Calls, Go, Known, Refused
from fleet.wire.mcp import ToolResult, parse_result
from fleet.wire.words import Answer, CallTool
from fleet.worker.shard import Shard
from fleet.worker.waiters import DISCONNECTED, Waiters

Status = Literal["ok", "error", "not_sent", "unknown"]

_OFFLINE = "the device is not connected"
_BUSY = "the device has too many calls to do"
_NO_ANSWER = "the device did not answer in time"


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


class DeviceCalls:
    """Calls tools of the devices of this worker's shards."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._waiters = Waiters()

    async def call(self, shard: Shard, mac: str, order: CallTool, idempotency: str, seconds: float) -> Outcome:
        """Run a tool at most once, ever, for one idempotency key; `order.id` is replaced.

        Raises:
            Unavailable: Redis is away; nothing was sent.
        """
        begun = await self._calls.begin(mac, idempotency, seconds)
        match begun:
            case Refused("offline"):
                return Outcome("not_sent", _OFFLINE)
            case Refused():
                return Outcome("not_sent", _BUSY)
            case Known(_, "done"):
                return _decode(begun.result)
            case Known(number, "pending"):
                return await self._await(mac, number, seconds, None)
            case Known(_, "never sent"):
                return Outcome("not_sent", _OFFLINE)
            case Known():
                return Outcome("unknown", _NO_ANSWER)
            case Go(number):
                request = CallTool(number, order.name, order.arguments, order.session)
                return await self._await(mac, number, seconds, lambda: shard.tell(mac, request))

    async def answer(self, mac: str, answer: Answer) -> bool:
        """Take a device's answer; False when it is late, repeated, or to no call."""
        fresh = await self._calls.complete(mac, answer.id, _encode(answer))
        self._waiters.resolve(mac, answer)
        return fresh

    def disconnect(self, mac: str) -> None:
        self._waiters.disconnect(mac)

    async def _await(self, mac: str, number: int, seconds: float, send: Callable[[], None] | None) -> Outcome:
        with self._waiters.expect(mac, number) as waiting:
            if send is not None:
                try:
                    send()
                except (Unavailable, Overloaded):
                    await self._calls.give_up(mac, number, sent=False)
                    return Outcome("not_sent", _OFFLINE)
            try:
                async with asyncio.timeout(seconds):
                    answer = await waiting
            except TimeoutError:
                answer = None
        if answer is not None and answer is not DISCONNECTED:
            return _outcome(answer)
        if await self._calls.give_up(mac, number, sent=True):
            return Outcome("unknown", _NO_ANSWER)
        # Another process took the answer, or the sweep was faster.
        known = await self._calls.result(mac, number)
        return _decode(known) if known is not None else Outcome("unknown", _NO_ANSWER)


def _outcome(answer: Answer) -> Outcome:
    if answer.error is not None:
        return Outcome("error", answer.error)
    result: ToolResult = parse_result(answer.result)
    return Outcome("error" if result.failed else "ok", result.text)


def _encode(answer: Answer) -> str:
    outcome = _outcome(answer)
    return json.dumps([outcome.status, outcome.text], ensure_ascii=False)


def _decode(text: str) -> Outcome:
    status, words = json.loads(text)
    return Outcome(status, words)
