"""What every built-in tool is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.core.ports import ToolOffer
from fleet.core.server_tools import Caller, ServerResult

Run = Callable[[dict[str, JsonValue], Caller], Awaitable[ServerResult]]
"""Runs a tool with arguments that fit its schema."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A tool that this process runs itself. Run twice with the same arguments it does nothing more than once."""

    offer: ToolOffer
    run: Run


def built_in(name: str, description: str, run: Run, **properties: dict[str, JsonValue]) -> BuiltIn:
    """Return a tool; a property is required if its rule holds `"required": True`."""
    required: list[JsonValue] = [key for key, rule in properties.items() if rule.get("required")]
    rules = {
        key: {word: value for word, value in rule.items() if word != "required"} for key, rule in properties.items()
    }
    schema = {"type": "object", "properties": rules, **({"required": required} if required else {})}
    return BuiltIn(ToolOffer(name, description, schema), run)


def text_of(arguments: dict[str, JsonValue], name: str) -> str:
    """Return a text argument without blanks around it; empty where it is missing."""
    value = arguments.get(name)
    return value.strip() if isinstance(value, str) else ""


def failed(reason: str) -> ServerResult:
    """Return the result of a tool that could not do what it was called for."""
    return ServerResult(reason, failed=True)
