"""Control of a local server: how to reach it, and images for it."""

import struct
from collections.abc import AsyncIterator
from pathlib import Path

from fleet.adapters.files import endpoints
from fleet.adapters.files.local_token import read_local_token
from fleet.client import images
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import Unavailable
from fleet.wire.control.images import ImageUpload


def local_control(data: Path) -> AsyncFleetClient:
    """Return a client of the control whose server has its data in a folder.

    Raises:
        Unavailable: It did not start.
    """
    found = endpoints.find(data)
    if found is None or not found.control_url:
        raise Unavailable("control did not start; see the log")
    return AsyncFleetClient(found.control_url, read_local_token(data), found.control_authority)


async def upload_image(control: AsyncFleetClient, board: str, version: str) -> int:
    """Upload an image for a board that has nothing but its version, and a size; return its number."""
    described = struct.pack("<II8x", 0xABCD5432, 0) + version.encode().ljust(32, b"\0")
    image = b"\xe9" + bytes(31) + described + board.encode() * 4_000

    async def pieces() -> AsyncIterator[bytes]:
        yield image

    return (await control.upload(images.upload(ImageUpload(board=board)), pieces(), images.BINARY)).id
