"""Addresses of clips: one for each delivery, signed, so that nobody finds one by guessing."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from fleet.wire.identity import CredentialKeys

PATH: Final = "/xiaozhi/clips"
_PURPOSE: Final = "clip"
_NAME: Final = re.compile(r"([0-9]{1,4})-([0-9a-f]{32})\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]{32})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClipDelivery:
    """One delivery of a clip to one device: the shard that keeps its record, and its id."""

    shard: int
    id: str
    """32 hex digits."""

    @classmethod
    def of(cls, shard: int, mac: str, call: str) -> "ClipDelivery":
        """Return the delivery for an operator's call; the same for the next owner of the shard."""
        return cls(shard, hashlib.sha256(f"{mac} {call}".encode()).hexdigest()[:32])


def clip_path(keys: CredentialKeys, delivery: ClipDelivery) -> str:
    """Return the path of a delivery's clip."""
    named = f"{delivery.shard}-{delivery.id}"
    key, signature = keys.sign(_PURPOSE, named)
    return f"{PATH}/{named}.{key}.{signature}.ogg"


def read_name(keys: CredentialKeys, name: str) -> ClipDelivery | None:
    """Return the delivery that a path names, without `PATH` and `.ogg`; None if no key has signed it."""
    found = _NAME.fullmatch(name)
    if found is None or not keys.check(found[3], _PURPOSE, f"{found[1]}-{found[2]}", found[4]):
        return None
    return ClipDelivery(int(found[1]), found[2])
