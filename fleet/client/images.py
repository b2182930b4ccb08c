"""Calls about images of firmware and assets."""

from typing import Final

from fleet.client.call import Call, Nothing
from fleet.wire.control.images import ImageUpload, StoredImage
from fleet.wire.control.shapes import ListPage

ImagePage = ListPage[StoredImage]
BINARY: Final = "application/octet-stream"


def upload(about: ImageUpload) -> Call[StoredImage]:
    """Store a file, for `AsyncFleetClient.upload`."""
    return Call("POST", "/firmware", StoredImage, about.model_dump(exclude_defaults=True))


def listing() -> Call[ImagePage]:
    """List all images."""
    return Call("GET", "/firmware", ImagePage)


def read(image: int) -> Call[StoredImage]:
    """Read an image."""
    return Call("GET", f"/firmware/{image}", StoredImage)


def remove(image: int) -> Call[Nothing]:
    """Delete an image."""
    return Call("DELETE", f"/firmware/{image}", Nothing)
