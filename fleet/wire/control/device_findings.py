"""What the doctor finds about a device, as the API of control gives it."""

from typing import Literal

from fleet.wire.control.shapes import Shape


class DeviceFinding(Shape):
    """One check of a device, from its first request to its last answer. The first problem is the reason of silence.

    `check` and `case` name the result for programs, such as `device.hello` and `refused`; `message` and `advice` say it
    in English, with times and figures.
    """

    check: str
    case: str
    verdict: Literal["ok", "skipped", "warning", "problem", "wrong"]
    message: str
    advice: str
