"""The settings of how work is spread."""

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import EVERY, setting


class Sharding(BaseModel):
    """How work is spread over processes, and handed over when one ends."""

    shards: int = setting(
        16,
        "Number of shards: the most workers that have work. It is written into keys of Redis and into the broker's "
        "sessions. The front and the gateway read it where they have a Redis.",
        EVERY,
        form="divisor of 256: 1, 2, 4 … 256",
        same=True,
    )
    lease_seconds: float = setting(
        6.0,
        "A shard's lease ends this long after its last renewal, and another worker takes the shard. Less takes over "
        "sooner from a worker that hangs; a worker that was frozen for longer loses its shards and joins again.",
        ("worker",),
        unit="seconds",
        gt=0,
    )
    drain_seconds: float = setting(
        10.0,
        "How long a process that is told to end (SIGTERM) waits for its turns, the api for its requests. The "
        "supervisor must give it 7 s more before it kills.",
        ("worker", "edge", "api", "gateway"),
        unit="seconds",
        ge=0,
        alone=True,
    )
    edge_sessions: int = setting(
        20_000,
        "Most sessions of an edge: it refuses more, and workers give a full one no more.",
        ("worker", "edge"),
        ge=1,
        same=True,
    )

    @field_validator("shards")
    @classmethod
    def _divides(cls, value: int) -> int:
        if value < 1 or 256 % value:
            raise ValueError("must be a divisor of 256")
        return value
