"""What a server has ready for the checks of bootstrap and activation, as the person who runs the suite knows it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Bind = Callable[[str], Awaitable[None]]
"""Enters a code that a device shows, as an operator does.

Raises:
    Unavailable: It did not work.
"""


@dataclass(frozen=True, slots=True)
class Binding:
    """A server that serves bound devices only: its bootstrap, how to bind, and a serial number whose key it knows."""

    ota_url: str
    bind: Bind
    serial: str = ""
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class Images:
    """Firmware on the server, each as `BOARD/VERSION`, empty where there is none of that kind."""

    offered: str = ""
    forced: str = ""
    """Of a board that is brought to this version whatever it runs."""


NO_IMAGES = Images()
