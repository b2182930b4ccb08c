"""The tools that firmware keeps from the model: they are listed and meant for users only (contract 6)."""

from fleet.workbench.sim.network.download import download
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Parameter, Restart, ToolError, tool
from fleet.workbench.sim.tools.vision import upload_screen


@tool("self.get_system_info", "Tells hardware and firmware.", user_only=True)
async def _system_info(board: Board, _: Arguments) -> Outcome:
    return board.system_info


@tool("self.reboot", "Restarts the device.", user_only=True)
async def _reboot(_: Board, __: Arguments) -> Outcome:
    return Restart()


@tool(
    "self.upgrade_firmware",
    "Installs firmware from an address and restarts the device.",
    # Firmware registers the help text as the default, so the argument is not required.
    Parameter("url", "string", "The address of the firmware image to install"),
    user_only=True,
)
async def _upgrade(_: Board, given: Arguments) -> Outcome:
    return Restart(firmware=str(given["url"]))


@tool("self.screen.get_info", "Tells the screen's size.", user_only=True)
async def _screen_info(_: Board, __: Arguments) -> Outcome:
    return {"width": 240, "height": 240, "monochrome": False}


@tool(
    "self.screen.snapshot",
    "Uploads a picture of the screen.",
    Parameter("url", "string"),
    Parameter("quality", "integer", 80, 1, 100),
    user_only=True,
)
async def _snapshot(board: Board, given: Arguments) -> Outcome:
    if not await upload_screen(board, str(given["url"])):
        raise ToolError("Failed to upload snapshot")
    return True


@tool(
    "self.screen.preview_image",
    "Shows a picture from an address on the screen.",
    Parameter("url", "string"),
    user_only=True,
)
async def _preview(board: Board, given: Arguments) -> Outcome:
    found = await download(str(given["url"]), board.upload_headers)
    board.findings.extend(found.findings)
    if not found.content:
        raise ToolError(f"Failed to open URL: {given['url']}")
    return True


@tool(
    "self.assets.set_download_url",
    "Sets where assets are downloaded from at the next start.",
    Parameter("url", "string"),
    user_only=True,
)
async def _set_assets(board: Board, given: Arguments) -> Outcome:
    board.assets_url = str(given["url"])
    return True


USER_ONLY = (_system_info, _reboot, _upgrade, _screen_info, _snapshot, _preview, _set_assets)
