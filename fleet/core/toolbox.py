"""A device's tools under names and schemas for the model.

Device tool names contain dots and may be long, models accept `[a-zA-Z0-9_-]{1,64}`; the mapping has no collisions.
Arguments are validated against the tool's schema before a call is sent: a device executes every call that it receives.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pydantic import JsonValue
from pydantic_core import from_json

from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.schemas.arguments import LARGEST_INTEGER, fit
from fleet.core.schemas.cleaning import LARGEST_NUMBER
from fleet.core.shown_tools import show
from fleet.core.tool_gate import DENIED
from fleet.wire.json_text import has_too_many_values, is_finite
from fleet.wire.mcp import ToolSpec

LONGEST_NAME = 64
MOST_OFFERS = 128
"""Tools that are offered; some endpoints refuse more."""
LARGEST_OFFERS = 100_000
"""Characters of all offers together: they are part of every request to the model."""
MOST_GROWTH = 8
"""Arguments take at most so many bytes for each character that the model wrote: 1e15 becomes 1000000000000000.0."""
_NAMED = 20
_TOO_LONG = "the arguments are too long, nested too deeply, or hold a number that is too large for the tool"

Fault = Literal["TOOL_NOT_FOUND", "INVALID_TOOL_PARAMETERS"]


@dataclass(frozen=True, slots=True)
class ArgumentLimits:
    """Limits of a call's arguments; the defaults are for devices."""

    size: int = 4_000
    """Bytes: a device without much memory takes messages of 6 KB."""
    levels: int = 6
    """Firmware's JSON parser has a small stack and accepts ten levels in all."""
    integer: int = LARGEST_INTEGER
    """The largest integer, with either sign."""

    def reads(self, text: str) -> bool:
        """Whether arguments are short enough to be parsed; spaces and escapes may double their length."""
        return len(text) <= 2 * self.size and not has_too_many_values(text)


DEVICE = ArgumentLimits()
PROGRAM = ArgumentLimits(100_000, 16, 2**53 - 1)
"""For tools of programs on a computer; JavaScript reads integers up to this one."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may be sent: the device's own name of the tool, and arguments that fit its schema."""

    tool: ToolSpec
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not sent."""

    reason: str
    """Text for the model, from which it can correct the call."""
    fault: Fault
    """The code of the fault, for programs."""


class Toolbox:
    """The tools of one device under the names that the model knows.

    Args:
        tools: As the device announced them; tools for people only are left out.
        taken: Names of other tools that the model knows; none is used twice.
        limits: Of the calls' arguments.
        validates: Whether arguments are validated here; False if the schemas are the cleaned ones for models.
        hides: Whether a tool, by its own name, is kept from the model; a call of it is refused.
    """

    def __init__(
        self,
        tools: Sequence[ToolSpec],
        taken: Collection[str] = (),
        limits: ArgumentLimits = DEVICE,
        *,
        validates: bool = True,
        hides: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._taken = frozenset(taken)
        self._limits = limits
        self._validates = validates
        self._tools: dict[str, ToolSpec] = {}
        self._offers: dict[str, ToolOffer] = {}
        self._room = LARGEST_OFFERS
        listed = {tool.name: tool for tool in tools if not tool.user_only}
        offered = {name: tool for name, tool in listed.items() if not hides(name)}
        for tool in offered.values():
            self._offer(tool)
        self.hidden = frozenset(self._free_name(name) for name in listed if name not in offered)
        """Names under which the model may still know the tools that are kept from it."""
        self.offers: Sequence[ToolOffer] = tuple(self._offers.values())
        """The tools as the model sees them."""
        self.left_out = len(offered) - len(self._offers)
        """How many are not offered because there are too many."""

    @property
    def size(self) -> int:
        """Characters of all offers together."""
        return LARGEST_OFFERS - self._room

    def prepare(self, call: ToolCall) -> Prepared | Refusal:
        """Return the call to send, or the reason why it is refused; never raises."""
        tool = self._tools.get(call.name)
        if tool is None and call.name in self.hidden:
            return Refusal(DENIED, "TOOL_NOT_FOUND")
        if tool is None:
            return no_such_tool(call.name, self._tools)
        if not self._limits.reads(call.arguments):
            return _refuse(_TOO_LONG)
        arguments = read_arguments(call.arguments)
        if arguments is None:
            return _refuse("the arguments are no valid JSON object")
        fitted = fit(tool.input_schema, arguments, self._limits.integer) if self._validates else arguments
        if isinstance(fitted, str):
            return _refuse(fitted)
        if not _is_small(fitted, self._limits, len(call.arguments)):
            return _refuse(_TOO_LONG)
        return Prepared(tool, fitted)

    def _offer(self, tool: ToolSpec) -> None:
        shown = show(tool)
        if len(self._offers) >= MOST_OFFERS or shown.size > self._room:
            return
        self._room -= shown.size
        name = self._free_name(tool.name)
        self._tools[name] = tool
        self._offers[name] = ToolOffer(name, shown.description, shown.parameters)

    def _free_name(self, name: str) -> str:
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name.removeprefix("self."))
        if plain[:1].isdigit() or plain.startswith("-"):
            plain = f"_{plain}"  # Gemini requires a letter or an underscore first
        free, salt = plain, name
        while not 0 < len(free) <= LONGEST_NAME or free in self._tools or free in self._taken:
            salt = hashlib.sha256(salt.encode("utf-8", "replace")).hexdigest()
            free = f"{plain[: LONGEST_NAME - 9]}_{salt[:8]}"
        return free


def read_arguments(text: str) -> dict[str, JsonValue] | None:
    """Return the parsed arguments of a call, or None if they are not a JSON object."""
    try:
        arguments = from_json(text.strip() or "{}", allow_inf_nan=False)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) and is_finite(arguments) else None


def no_such_tool(name: str, known: Iterable[str]) -> Refusal:
    """Return the refusal of a call that names no tool."""
    names = ", ".join(islice(known, _NAMED)) or "none"
    reason = f"error: there is no tool {name[:LONGEST_NAME]!r} (TOOL_NOT_FOUND); there are: {names}"
    return Refusal(reason, "TOOL_NOT_FOUND")


def _refuse(why: str) -> Refusal:
    return Refusal(f"error: not done, {why}", "INVALID_TOOL_PARAMETERS")


def _is_small(arguments: dict[str, JsonValue], limits: ArgumentLimits, length: int) -> bool:
    """Whether arguments, which were made of a text of this length, are small enough."""
    if not _fits(arguments, limits.levels):
        return False
    # Most are far from the limit, and writing them takes longer than all else here.
    small = length * MOST_GROWTH <= limits.size
    return small or len(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace")) <= limits.size


def _fits(value: JsonValue, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return not isinstance(value, int | float) or abs(value) < LARGEST_NUMBER
    return levels > 0 and all(_fits(part, levels - 1) for part in inner)
