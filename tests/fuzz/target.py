"""What can be fuzzed: how an input comes about, and what must be true of it."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from fleet.wire.messages import DeviceEvent


@dataclass(frozen=True, slots=True)
class Target:
    """One codec, or several that follow each other.

    An input is made of Python's own types, so that its `repr` is a literal that repeats a failure. `check` raises
    whatever it finds wrong; nothing else of the codec's may come out.
    """

    name: str
    make: Callable[[Random], Any]
    check: Callable[[Any], object]
    share: int = 10
    """How much of a campaign goes here, as a weight."""


def assert_sendable(thing: DeviceEvent | object) -> None:
    """What a codec hands on is written to Redis, to a log or to a device: every text in it must have a UTF-8 form."""
    if isinstance(thing, str):
        thing.encode()
    elif isinstance(thing, (list, tuple)):
        for member in thing:
            assert_sendable(member)
    elif isinstance(thing, dict):
        for key, member in thing.items():
            assert_sendable(key)
            assert_sendable(member)
    elif hasattr(thing, "__slots__"):
        for name in thing.__slots__:
            assert_sendable(getattr(thing, name))
