"""The tools of a board: what they are called, what they take, what they do (contract 6)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from fleet.sim.board import Board
from fleet.sim.profile import Profile
from fleet.sim.vision import explain

Argument = bool | int | str
Arguments = Mapping[str, Argument]


class ToolError(Exception):
    """A tool failed; its text goes to the server as it is."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The tool restarts the device and never answers."""


Outcome = bool | int | str | dict[str, JsonValue] | list[JsonValue] | Restart | None


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
    run: Callable[[Board, Arguments], Awaitable[Outcome]]
    parameters: tuple[Parameter, ...] = field(default_factory=tuple)
    user_only: bool = False

    def describe(self) -> dict[str, JsonValue]:
        """Return the tool as it stands in a list."""
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema() for parameter in self.parameters},
        }
        required: list[JsonValue] = [parameter.name for parameter in self.parameters if parameter.default is None]
        if required:
            schema["required"] = required
        tool: dict[str, JsonValue] = {"name": self.name, "description": self.description, "inputSchema": schema}
        if self.user_only:
            tool["annotations"] = {"audience": ["user"]}
        return tool


async def _status(board: Board, _: Arguments) -> Outcome:
    status = board.status()
    return status if isinstance(status, dict) else {}


async def _set_volume(board: Board, given: Arguments) -> Outcome:
    board.volume = int(given["volume"])
    return True


async def _set_brightness(board: Board, given: Arguments) -> Outcome:
    board.brightness = int(given["brightness"])
    return True


async def _set_theme(board: Board, given: Arguments) -> Outcome:
    theme = str(given["theme"])
    if theme not in ("light", "dark"):
        return False
    board.theme = theme
    return True


async def _take_photo(board: Board, given: Arguments) -> Outcome:
    if not board.photo:
        raise ToolError("Failed to capture photo")
    answer = await explain(board, str(given["question"]))
    if answer.failed:
        raise ToolError(answer.text)
    return answer.text


async def _lamp_state(board: Board, _: Arguments) -> Outcome:
    return {"power": board.lamp}


async def _lamp_on(board: Board, _: Arguments) -> Outcome:
    board.lamp = True
    return True


async def _lamp_off(board: Board, _: Arguments) -> Outcome:
    board.lamp = False
    return True


async def _screen_info(_: Board, __: Arguments) -> Outcome:
    return {"width": 240, "height": 240, "monochrome": False}


async def _system_info(board: Board, _: Arguments) -> Outcome:
    return board.system_info


async def _reboot(_: Board, __: Arguments) -> Outcome:
    return Restart()


_COMMON = (
    Tool(
        "self.get_device_status",
        "Tells the device's current state: speaker, screen, battery, network. Call it before changing a value relative "
        "to the present one, and to answer questions about the device.",
        _status,
    ),
    Tool(
        "self.audio_speaker.set_volume",
        "Sets the speaker's volume. When the present volume is not known, call `self.get_device_status` first.",
        _set_volume,
        (Parameter("volume", "integer", minimum=0, maximum=100),),
    ),
    Tool(
        "self.screen.set_brightness",
        "Sets the screen's brightness.",
        _set_brightness,
        (Parameter("brightness", "integer", minimum=0, maximum=100),),
    ),
    Tool(
        "self.screen.set_theme",
        "Sets the screen's theme: `light` or `dark`.",
        _set_theme,
        (Parameter("theme", "string"),),
    ),
)
_CAMERA = (
    Tool(
        "self.camera.take_photo",
        "Takes a photo and explains it. Call it when the user asks to look at something.",
        _take_photo,
        (Parameter("question", "string"),),
    ),
)
_LAMP = (
    Tool("self.lamp.get_state", "Tells whether the lamp is on.", _lamp_state),
    Tool("self.lamp.turn_on", "Turns the lamp on.", _lamp_on),
    Tool("self.lamp.turn_off", "Turns the lamp off.", _lamp_off),
)
_USER_ONLY = (
    Tool("self.get_system_info", "Tells hardware and firmware.", _system_info, user_only=True),
    Tool("self.reboot", "Restarts the device.", _reboot, user_only=True),
    Tool("self.screen.get_info", "Tells the screen's size.", _screen_info, user_only=True),
)


def tools_of(profile: Profile) -> tuple[Tool, ...]:
    """Return a board's tools in the order of its list: common, board's own, for users only."""
    own = (_CAMERA if profile.camera else ()) + (_LAMP if profile.lamp else ())
    return _COMMON + own + _USER_ONLY
