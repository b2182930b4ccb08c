"""The tools that firmware keeps from the model: they are listed and meant for users only (contract 6)."""

from fleet.workbench.sim.network.download import download
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Restart, Tool, ToolError
from fleet.workbench.sim.tools.vision import upload_screen


async def _system_info(board: Board, _: Arguments) -> Outcome:
    return board.system_info


async def _reboot(_: Board, __: Arguments) -> Outcome:
    return Restart()


async def _upgrade(_: Board, given: Arguments) -> Outcome:
    return Restart(firmware=str(given["url"]))


async def _screen_info(_: Board, __: Arguments) -> Outcome:
    return {"width": 240, "height": 240, "monochrome": False}


async def _snapshot(board: Board, given: Arguments) -> Outcome:
    if not await upload_screen(board, str(given["url"])):
        raise ToolError("Failed to upload snapshot")
    return True


async def _preview(board: Board, given: Arguments) -> Outcome:
    found = await download(str(given["url"]), board.upload_headers)
    board.findings.extend(found.findings)
    if not found.content:
        raise ToolError(f"Failed to open URL: {given['url']}")
    return True


async def _set_assets(board: Board, given: Arguments) -> Outcome:
    board.assets_url = str(given["url"])
    return True


USER_ONLY = (
    Tool("self.get_system_info", "Tells hardware and firmware.", _system_info, user_only=True),
    Tool("self.reboot", "Restarts the device.", _reboot, user_only=True),
    Tool(
        "self.upgrade_firmware",
        "Installs firmware from an address and restarts the device.",
        _upgrade,
        # Firmware registers the help text as the default, so the argument is not required.
        (Parameter("url", "string", "The address of the firmware image to install"),),
        user_only=True,
    ),
    Tool("self.screen.get_info", "Tells the screen's size.", _screen_info, user_only=True),
    Tool(
        "self.screen.snapshot",
        "Uploads a picture of the screen.",
        _snapshot,
        (Parameter("url", "string"), Parameter("quality", "integer", 80, 1, 100)),
        user_only=True,
    ),
    Tool(
        "self.screen.preview_image",
        "Shows a picture from an address on the screen.",
        _preview,
        (Parameter("url", "string"),),
        user_only=True,
    ),
    Tool(
        "self.assets.set_download_url",
        "Sets where assets are downloaded from at the next start.",
        _set_assets,
        (Parameter("url", "string"),),
        user_only=True,
    ),
)
