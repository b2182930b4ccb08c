"""The settings of shards, leases and the end of a process."""

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import ALL_ROLES, setting


class ShardingGroup(BaseModel):
    """Distribution of work over processes, and its transfer when a process ends."""

    shards: int = setting(
        16,
        "Number of shards: at most this many workers have work. It is part of keys in Redis and of the broker's "
        "sessions. The front and the gateway read it if they have a Redis.",
        ALL_ROLES,
        syntax="divisor of 256: 1, 2, 4 … 256",
        equal=True,
    )
    lease_seconds: float = setting(
        6.0,
        "A shard's lease ends this long after its last renewal; then another worker takes the shard. A lower value "
        "replaces a hanging worker sooner. A worker that was suspended for longer loses its shards and joins again.",
        ("worker",),
        unit="seconds",
        gt=0,
    )
    drain_seconds: float = setting(
        10.0,
        "How long a process waits for its turns after SIGTERM, the api for its requests. The supervisor must wait 7 s "
        "longer before it kills the process.",
        ("worker", "edge", "api", "gateway"),
        unit="seconds",
        ge=0,
        roles_only=True,
    )
    edge_sessions: int = setting(
        20_000,
        "Most sessions of an edge. It refuses further ones, and workers assign no session to a full edge.",
        ("worker", "edge"),
        ge=1,
        equal=True,
    )

    @field_validator("shards")
    @classmethod
    def _divides(cls, value: int) -> int:
        if value < 1 or 256 % value:
            raise ValueError("must be a divisor of 256")
        return value
