"""Tool calls, merged from the pieces in which endpoints send them."""

import json
import logging
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

from fleet.core.ports import ToolCall

log = logging.getLogger(__name__)

MOST_CALLS = 64
"""Calls that one message may hold; an agent runs 16 of them."""
_CALL_SIZE = 100
"""Size of a call without any text."""
_TAIL = 16
"""Characters at the end of arguments in which their last brace stands, if they are complete."""
_MOST_TRIED = 1_000_000
"""Characters that are parsed to see where calls of one message end; each try parses all arguments so far."""


class FunctionPiece(BaseModel):
    """A piece of a call; some endpoints send `arguments` as an object instead of text."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallPiece(BaseModel):
    """A piece of a call, or a whole one; `index` and `id` are missing with some endpoints."""

    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None
    extra_content: dict[str, Any] | None = None
    """Fields that Gemini wants back with the call."""


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] | None = None


class CallMerger:
    """Merges the pieces of one message's calls, in the order in which the calls began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self.size = 0
        """Roughly how many characters are held."""
        self.too_many = False
        """Whether there are more calls than allowed; then further pieces are dropped."""
        self.extras: dict[str, dict[str, Any]] = {}
        """Extra fields of the finished calls, by their ids."""
        self._tried = 0

    def add(self, piece: CallPiece) -> None:
        """Take the next piece."""
        if self.too_many:
            return
        function = piece.function or FunctionPiece()
        call = self._find(piece, function)
        call.id = call.id or piece.id or ""
        call.name = call.name or function.name or ""
        call.extra = call.extra or piece.extra_content
        before = len(call.arguments)
        if isinstance(function.arguments, dict):
            call.arguments = json.dumps(function.arguments, ensure_ascii=False)
        else:
            call.arguments += function.arguments or ""
        self.size += len(call.arguments) - before

    def finish(self, taken: Collection[str]) -> tuple[ToolCall, ...]:
        """Return the calls; each has an id that is neither in `taken` nor used twice.

        Idempotency keys are made of these ids, and some endpoints send none or count from zero in every message.
        """
        used = set(taken)
        calls = []
        for call in self._calls:
            if not call.name:
                log.warning("model asked for a call without a name")
                continue
            name = call.id if call.id and call.id not in used else f"call_{secrets.token_hex(8)}"
            used.add(name)
            if call.extra:
                self.extras[name] = call.extra
            calls.append(ToolCall(name, call.name, call.arguments.strip() or "{}"))
        return tuple(calls)

    def _find(self, piece: CallPiece, function: FunctionPiece) -> _Call:
        if piece.index is None:
            known = self._last_of(piece)
        else:
            known = next((call for call in reversed(self._calls) if call.index == piece.index), None)
        if known is None or self._begins_another(known, piece, function):
            known = _Call(piece.index)
            self._calls.append(known)
            self.too_many = len(self._calls) > MOST_CALLS
            self.size += _CALL_SIZE + len(piece.id or "") + len(function.name or "")
        return known

    def _last_of(self, piece: CallPiece) -> _Call | None:
        same = (call for call in self._calls if piece.id and call.id == piece.id)
        return next(same, self._calls[-1] if self._calls else None)

    def _begins_another(self, call: _Call, piece: CallPiece, function: FunctionPiece) -> bool:
        """Whether a piece that points to `call` is another call: some endpoints give all calls the index 0, or none."""
        if piece.id and call.id:
            return piece.id != call.id
        if not function.name or not call.name:
            return False
        return function.name != call.name or (bool(function.arguments) and self._is_complete(call.arguments))

    def _is_complete(self, arguments: str) -> bool:
        """Whether these are all arguments of a call; not, if too much was parsed to find out."""
        if not arguments[-_TAIL:].rstrip().endswith("}"):
            return False
        self._tried += len(arguments)
        return self._tried <= _MOST_TRIED and is_object(arguments)


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(from_json(text, allow_inf_nan=False), dict)
    except ValueError:
        return False
