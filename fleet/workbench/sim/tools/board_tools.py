"""The tools of a board: common ones and its own (contract 6)."""

from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Tool, ToolError, tool
from fleet.workbench.sim.tools.user_tools import USER_ONLY
from fleet.workbench.sim.tools.vision import explain


@tool(
    "self.get_device_status",
    "Tells the device's current state: speaker, screen, battery, network. Call it before changing a value relative "
    "to the present one, and to answer questions about the device.",
)
async def _status(board: Board, _: Arguments) -> Outcome:
    status = board.status()
    return status if isinstance(status, dict) else {}


@tool(
    "self.audio_speaker.set_volume",
    "Sets the speaker's volume. When the present volume is not known, call `self.get_device_status` first.",
    Parameter("volume", "integer", minimum=0, maximum=100),
)
async def _set_volume(board: Board, given: Arguments) -> Outcome:
    board.volume = int(given["volume"])
    return True


@tool(
    "self.screen.set_brightness",
    "Sets the screen's brightness.",
    Parameter("brightness", "integer", minimum=0, maximum=100),
)
async def _set_brightness(board: Board, given: Arguments) -> Outcome:
    board.brightness = int(given["brightness"])
    return True


@tool("self.screen.set_theme", "Sets the screen's theme: `light` or `dark`.", Parameter("theme", "string"))
async def _set_theme(board: Board, given: Arguments) -> Outcome:
    theme = str(given["theme"])
    if theme not in ("light", "dark"):
        return False
    board.theme = theme
    return True


@tool(
    "self.camera.take_photo",
    "Takes a photo and explains it. Call it when the user asks to look at something.",
    Parameter("question", "string"),
    slow=True,
)
async def _take_photo(board: Board, given: Arguments) -> Outcome:
    if not board.photo:
        raise ToolError("Failed to capture photo")
    answer = await explain(board, str(given["question"]))
    if answer.failed:
        raise ToolError(answer.text)
    return answer.text


@tool("self.lamp.get_state", "Tells whether the lamp is on.")
async def _lamp_state(board: Board, _: Arguments) -> Outcome:
    return {"power": board.lamp}


@tool("self.lamp.turn_on", "Turns the lamp on.")
async def _lamp_on(board: Board, _: Arguments) -> Outcome:
    board.lamp = True
    return True


@tool("self.lamp.turn_off", "Turns the lamp off.")
async def _lamp_off(board: Board, _: Arguments) -> Outcome:
    board.lamp = False
    return True


_COMMON = (_status, _set_volume, _set_brightness, _set_theme)
_CAMERA = (_take_photo,)
_LAMP = (_lamp_state, _lamp_on, _lamp_off)


def _output(number: int) -> Tool:
    name = f"self.output.set_{number}"

    async def switch(board: Board, given: Arguments) -> Outcome:
        board.outputs[str(number)] = int(given["level"])
        return True

    return Tool(
        name,
        f"Sets output {number} of the board, for whatever is wired to it: a fan, a pump, a heater, a strip of lights. "
        "0 switches it off, 100 is full power; dimmable outputs take the values between.",
        switch,
        (Parameter("level", "integer", minimum=0, maximum=100), Parameter("seconds", "integer", 0, 0, 86_400)),
    )


def tools_of(profile: Profile) -> tuple[Tool, ...]:
    """Return a board's tools in the order of its list: common, board's own, for users only."""
    own = (_CAMERA if profile.camera else ()) + (_LAMP if profile.lamp else ())
    return _COMMON + own + tuple(_output(number + 1) for number in range(profile.extra_tools)) + USER_ONLY
