"""The behaviour of device tools that do not answer at once (device contract, sections 5.3 and 6)."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolKind:
    """How long a tool takes, and its effect on the device meanwhile."""

    seconds: float = 0.0
    """Longest wait for its answer where that is longer than FLEET_TOOL_SECONDS."""
    slow: bool = False
    """It blocks the device's main loop: no audio may begin before its answer."""
    camera: bool = False
    """It uploads a photo, and needs a token for that."""
    leaves: bool = False
    """It ends the device's connection and has no answer; a disconnect or silence is a success."""
    fails_if_answered: bool = False
    """Firmware queues the action before it answers `true`: an answer arrives only if the action failed."""


QUICK = ToolKind()

# By name; the first match counts. A photo is uploaded within 30 s and explained within 30 s more.
_KINDS: tuple[tuple[re.Pattern[str], ToolKind], ...] = (
    (re.compile(r"self\.reboot|self\.system\.reconfigure_wifi"), ToolKind(leaves=True)),
    (re.compile(r"self\.upgrade_firmware"), ToolKind(300.0, slow=True, leaves=True, fails_if_answered=True)),
    (re.compile(r".*take_photo|.*camera.*"), ToolKind(seconds=70.0, slow=True, camera=True)),
    (re.compile(r"fleet\.announce"), ToolKind(seconds=360.0)),
    (re.compile(r"self\.screen\.(?:snapshot|preview_image)"), ToolKind(seconds=70.0, slow=True)),
)


def kind_of(name: str) -> ToolKind:
    """Return the kind of a tool by the device's name of it."""
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), QUICK)
