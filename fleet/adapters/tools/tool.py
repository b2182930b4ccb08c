"""Functions that all built-in tools use."""

from pydantic import JsonValue

from fleet.core.ports import ToolOffer
from fleet.core.server_tools import RunTool, ServerResult, ServerTool


def built_in(
    name: str, description: str, run: RunTool, *, repeatable: bool, **properties: dict[str, JsonValue]
) -> ServerTool:
    """Return a tool; a property is required if its rule holds `"required": True`."""
    required: list[JsonValue] = [key for key, rule in properties.items() if rule.get("required")]
    rules = {
        key: {word: value for word, value in rule.items() if word != "required"} for key, rule in properties.items()
    }
    schema = {"type": "object", "properties": rules, **({"required": required} if required else {})}
    return ServerTool(ToolOffer(name, description, schema), run, repeatable)


def text_of(arguments: dict[str, JsonValue], name: str) -> str:
    """Return a text argument without blanks around it; empty where it is missing."""
    value = arguments.get(name)
    return value.strip() if isinstance(value, str) else ""


def failed(reason: str) -> ServerResult:
    """Return the result of a call that failed; `reason` is for the model."""
    return ServerResult(reason, failed=True)
