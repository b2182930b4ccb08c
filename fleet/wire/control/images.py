"""Images of firmware and assets, as the API of control gives and takes them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from fleet.wire.control.shapes import NUMBER, Shape, Time
from fleet.wire.firmware import is_board

ImageKind = Literal["firmware", "assets"]


def _board(text: str) -> str:
    if not is_board(text):
        raise ValueError("is no name of a board")
    return text


Board = Annotated[str, AfterValidator(_board)]
Label = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^$")]
Digest = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{64})?$")]


class ImageUpload(Shape):
    """What is said of a file that is uploaded."""

    board: Board
    kind: ImageKind = "firmware"
    version: Label = ""
    """Of firmware: empty, or the one that the image reports. Of assets: what people call them."""
    sha256: Digest = ""
    """If it is given, the file must have it."""


class StoredImage(Shape):
    """A file that devices can be given."""

    id: int
    kind: ImageKind
    board: str
    version: str
    sha256: str
    size: int
    created: Time
    created_by: str


class FirmwareOrder(Shape):
    """Of a job of the kind `firmware`: what is installed on devices of the image's board, and how.

    `reboot`: each is offered the image and restarted. `next_boot`: it is offered the image when it starts next.
    `push`: it is told to install the image now; it compares no versions then.
    """

    image: Annotated[int, Field(ge=1, lt=2**62), NUMBER]
    how: Literal["reboot", "next_boot", "push"] = "reboot"
    force: bool = False
    """Whether devices with a newer version get it, too."""


class AssetsOrder(Shape):
    """Of a job of the kind `assets`: wake words, fonts or emoji that devices of the image's board download."""

    image: Annotated[int, Field(ge=1, lt=2**62), NUMBER]
