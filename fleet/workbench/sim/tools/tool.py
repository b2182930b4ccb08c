"""A tool of a board: what it is called, what it takes, what it does (contract 6)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from fleet.workbench.sim.tools.board import Board

Argument = bool | int | str
Arguments = Mapping[str, Argument]


class ToolError(Exception):
    """A tool failed; its text goes to the server as it is."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The tool restarts the device and never answers.

    `firmware` is the address of the image that is installed before; if that fails the tool answers after all.
    """

    firmware: str = ""


Outcome = bool | int | str | dict[str, JsonValue] | list[JsonValue] | Restart | None
ToolFunction = Callable[[Board, Arguments], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument; without a default it is required."""

    name: str
    type: Literal["boolean", "integer", "string"]
    default: Argument | None = None
    minimum: int | None = None
    maximum: int | None = None

    def schema(self) -> dict[str, JsonValue]:
        schema: dict[str, JsonValue] = {"type": self.type}
        for key in ("default", "minimum", "maximum"):
            value: Argument | None = getattr(self, key)
            if value is not None:
                schema[key] = value
        return schema


@dataclass(frozen=True, slots=True)
class Tool:
    """What the server may call; `run` works on the device's main loop."""

    name: str
    description: str
    run: ToolFunction
    parameters: tuple[Parameter, ...] = field(default_factory=tuple)
    user_only: bool = False
    slow: bool = False
    """Takes seconds, as a photo does."""

    def describe(self, *, always_required: bool = False) -> dict[str, JsonValue]:
        """Return the tool as it stands in a list; firmware leaves out an empty list of required arguments."""
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema() for parameter in self.parameters},
        }
        required: list[JsonValue] = [parameter.name for parameter in self.parameters if parameter.default is None]
        if required or always_required:
            schema["required"] = required
        described: dict[str, JsonValue] = {"name": self.name, "description": self.description, "inputSchema": schema}
        if self.user_only:
            described["annotations"] = {"audience": ["user"]}
        return described


def tool(
    name: str, description: str, *parameters: Parameter, user_only: bool = False, slow: bool = False
) -> Callable[[ToolFunction], Tool]:
    """Make a `Tool` of the decorated function."""
    return lambda run: Tool(name, description, run, parameters, user_only, slow)
