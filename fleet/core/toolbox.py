"""A device's tools as the model may see and call them.

Device tool names carry dots and may be long, models accept `[a-zA-Z0-9_-]{1,64}`; both ways without collisions.
Arguments are checked against the tool's schema before anything is sent: a device executes whatever reaches it.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json

from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.schema import clean, fit
from fleet.wire.mcp import ToolSpec

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1_000
MOST_OFFERS = 128
"""Tools that are offered; more than that some endpoints refuse."""
LARGEST_OFFERS = 100_000
"""Characters of all offers together: they are part of every request to the model."""
LARGEST_ARGUMENTS = 4_000
"""Bytes of a call's arguments: a device without much memory takes messages of 6 KB."""
DEEPEST_ARGUMENTS = 6
"""Levels of a call's arguments; firmware's parser has a small stack and takes ten in all."""

_NAMED = 20


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may be sent: the device's own name of the tool, and arguments that fit its schema."""

    tool: ToolSpec
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not sent, in words from which the model can do better."""

    reason: str


class Toolbox:
    """The tools of one device under the names that the model knows.

    Args:
        tools: As the device announced them; those meant for people only are left out.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._offers: dict[str, ToolOffer] = {}
        self._room = LARGEST_OFFERS
        offered = {tool.name: tool for tool in tools if not tool.user_only}
        for tool in offered.values():
            self._offer(tool)
        self.left_out = len(offered) - len(self._offers)
        """How many are not offered because there are too many."""

    @property
    def offers(self) -> Sequence[ToolOffer]:
        """The tools as the model sees them."""
        return tuple(self._offers.values())

    def prepare(self, call: ToolCall) -> Prepared | Refusal:
        """Return what to send for a call, or why nothing is sent; never raises."""
        tool = self._tools.get(call.name)
        if tool is None:
            names = ", ".join(list(self._tools)[:_NAMED]) or "none"
            return Refusal(f"error: there is no tool {call.name[:LONGEST_NAME]!r}; there are: {names}")
        arguments = _parse(call.arguments)
        if arguments is None:
            return Refusal("error: not done, the arguments are no valid JSON object")
        fitted = fit(self._offers[call.name].parameters, arguments)
        if isinstance(fitted, str):
            return Refusal(f"error: not done, {fitted}")
        if not _is_small(fitted):
            return Refusal("error: not done, the arguments are too long or nested too deeply for the device")
        return Prepared(tool, fitted)

    def _offer(self, tool: ToolSpec) -> None:
        schema = clean(tool.input_schema)
        description = tool.description[:LONGEST_DESCRIPTION]
        size = len(description) + len(json.dumps(schema))
        if len(self._offers) >= MOST_OFFERS or size > self._room:
            return
        self._room -= size
        name = self._free_name(tool.name)
        self._tools[name] = tool
        self._offers[name] = ToolOffer(name, description, schema)

    def _free_name(self, name: str) -> str:
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name.removeprefix("self."))
        free, salt = plain, name
        while not 0 < len(free) <= LONGEST_NAME or free in self._tools:
            salt = hashlib.sha256(salt.encode("utf-8", "replace")).hexdigest()
            free = f"{plain[: LONGEST_NAME - 9]}_{salt[:8]}"
        return free


def _parse(text: str) -> dict[str, JsonValue] | None:
    try:
        arguments = from_json(text.strip() or "{}", allow_inf_nan=False)
        json.dumps(arguments, allow_nan=False)  # 1e999 was read as infinity
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _is_small(arguments: dict[str, JsonValue]) -> bool:
    if not _fits(arguments, DEEPEST_ARGUMENTS):
        return False
    return len(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace")) <= LARGEST_ARGUMENTS


def _fits(value: JsonValue, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is None or (levels > 0 and all(_fits(part, levels - 1) for part in inner))
