"""`fleet firmware`: files of firmware and assets that jobs give to devices, over control."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import typer

from fleet.client import images
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked
from fleet.operations.json_output import AsJson, print_json, print_result
from fleet.operations.listing import print_list
from fleet.wire.control.images import ImageUpload, StoredImage

app = typer.Typer(help="Images of firmware and assets: add, list, show, delete.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(min=1, help="Number of the image.")]
_PIECE = 65_536
_COLUMNS = ("id", "kind", "board", "version", "size", "created", "sha256")


@app.command()
@operation
async def add(
    settings: Settings,
    file: Annotated[Path, typer.Argument(help="The file.")],
    board: Annotated[str, typer.Option(help="The board whose devices may get it, as they name it.")],
    assets: Annotated[
        str, typer.Option(metavar="<str>", help="It has assets, not firmware; a version for people.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Upload a file. Firmware must report a version that devices can compare."""
    about = checked(ImageUpload, {"board": board, **({"kind": "assets", "version": assets} if assets else {})})
    if not file.is_file():
        raise ConfigError(f"there is no file {file}")
    async with open_control(settings) as control:
        made = await control.upload(images.upload(about), _pieces(file), images.BINARY)
    print_result("images", [made], f"image {made.id}: {made.kind} {made.version} for {made.board}", as_json=as_json)


@app.command("list")
@operation
async def list_images(settings: Settings, as_json: AsJson = False) -> None:
    """List the images."""
    async with open_control(settings) as control:
        found = (await control.send(images.listing())).items
    if as_json:
        print_json("images", found)
        return
    print_list("images", _COLUMNS, [_row(one) for one in found], as_json=False)


@app.command()
@operation
async def show(settings: Settings, image: Id, as_json: AsJson = False) -> None:
    """Show an image."""
    async with open_control(settings) as control:
        found = await control.send(images.read(image))
    if as_json:
        print_json("images", [found])
        return
    print_list("images", _COLUMNS, [_row(found)], as_json=False)


@app.command()
@operation
async def delete(settings: Settings, image: Id, as_json: AsJson = False) -> None:
    """Delete an image that no job needs."""
    async with open_control(settings) as control:
        await control.send(images.remove(image))
    print_result("images", [], f"image {image} is deleted", as_json=as_json)


def _row(image: StoredImage) -> tuple[int | str, ...]:
    created = f"{image.created:%Y-%m-%d %H:%M}"
    return image.id, image.kind, image.board, image.version, image.size, created, image.sha256[:12]


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            yield piece
