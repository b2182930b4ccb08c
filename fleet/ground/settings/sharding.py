"""The settings of shards, leases and the end of a process."""

from pydantic import field_validator

from fleet.ground.settings.fields import ALL_ROLES, SettingGroup, setting


class ShardingGroup(SettingGroup):
    """Distribution of work over processes, and its transfer when a process ends."""

    title = "Processes"

    shards: int = setting(16, ALL_ROLES, syntax="divisor of 256: 1, 2, 4 … 256", equal=True)
    """Number of shards: at most this many workers have work. It is part of keys in Redis and of the broker's sessions.
    The front and the gateway read it if they have a Redis."""
    lease_seconds: float = setting(6.0, ("worker",), unit="seconds", gt=0)
    """A shard's lease ends this long after its last renewal; then another worker takes the shard. A lower value
    replaces a hanging worker sooner. A worker that was suspended for longer loses its shards and joins again."""
    drain_seconds: float = setting(
        10.0, ("worker", "edge", "api", "gateway", "control"), unit="seconds", ge=0, roles_only=True
    )
    """How long a process waits for its turns after SIGTERM, the api for its requests. The supervisor must wait 7 s
    longer before it kills the process."""
    edge_sessions: int = setting(20_000, ("worker", "edge"), ge=1, equal=True)
    """Most sessions of an edge. It refuses further ones, and workers assign no session to a full edge."""

    @field_validator("shards")
    @classmethod
    def _divides(cls, value: int) -> int:
        if value < 1 or 256 % value:
            raise ValueError("must be a divisor of 256")
        return value
