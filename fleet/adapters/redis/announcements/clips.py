"""Clips: texts as sound, one for each voice and text, kept for as long as a device may ask for them.

All clips of all tenants together have a bound; those whose life ends first give way.
"""

import base64
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, cast

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.client.store import Store

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all clips together, in Redis."""
LIFE_SECONDS: Final = 3600.0
"""Life of a clip after it was made or wanted last."""
MAKING_SECONDS: Final = 30.0
"""How long the maker of a clip keeps others from making it."""
FAILED_SECONDS: Final = 10.0
"""How long it is known that a clip could not be made."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The sound of a text: an Ogg file, and its length in ms."""

    audio: bytes
    ms: int


@dataclass(frozen=True, slots=True)
class ClipState:
    """What is known of a clip. Neither `ms` nor `failure`: it is not there yet."""

    ms: int = 0
    failure: str = ""


class Clips:
    """Reads and writes clips. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, clip: str) -> ClipState:
        """Return what is known of a clip; one that is there lives for its whole life from now on."""
        ms, failure = await self._store.call(
            "fleet_clip_find",
            [_key(clip), _failure(clip), f"{names.CLIPS}ends"],
            [clip, round(LIFE_SECONDS * 1000)],
        )
        return ClipState(int(ms or 0), failure)

    async def claim(self, clip: str) -> bool:
        """Return whether the caller is the one that has it made."""
        asked = self._store.client.set(f"{_key(clip)}:by", "", nx=True, px=round(MAKING_SECONDS * 1000))
        return bool(await self._store.ask(cast("Awaitable[bool | None]", asked)))

    async def read(self, clip: str) -> Clip | None:
        """Return a clip, None if it is gone."""
        asked = self._store.client.hmget(_key(clip), ["audio", "ms"])
        audio, ms = await self._store.ask(cast("Awaitable[list[str | None]]", asked))
        return Clip(base64.b64decode(audio), int(ms or 0)) if audio else None

    async def put(self, clip: str, made: Clip) -> bool:
        """Store a clip; return False if it is too large."""
        (stored,) = await self._store.call(
            "fleet_clip_put",
            [_key(clip), f"{names.CLIPS}ends", f"{names.CLIPS}sizes"],
            [clip, base64.b64encode(made.audio), made.ms, round(LIFE_SECONDS * 1000), MOST_BYTES, names.CLIPS],
        )
        return stored == "1"

    async def fail(self, clip: str, reason: str) -> None:
        """Note that a clip cannot be made now."""
        asked = self._store.client.set(_failure(clip), reason[:200], px=round(FAILED_SECONDS * 1000))
        await self._store.ask(cast("Awaitable[object]", asked))


def _key(clip: str) -> str:
    return f"{names.CLIPS}{clip}"


def _failure(clip: str) -> str:
    return f"{names.CLIPS}{clip}:no"
