"""The owner of a shard, which fenced writes carry."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """A worker and the fencing number under which it holds a shard."""

    worker: str
    fence: str
