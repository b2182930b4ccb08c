"""The settings of how work is spread."""

from pydantic import BaseModel, Field, field_validator


class Sharding(BaseModel):
    """How work is spread."""

    shards: int = Field(16, description="Number of shards, a divisor of 256; equal for all processes.")
    lease_seconds: float = Field(6.0, gt=0, description="A shard's lease ends this long after its last renewal.")
    drain_seconds: float = Field(
        10.0, ge=0, description="How long a worker or an edge that is told to end waits for its turns; not `fleet up`."
    )
    edge_sessions: int = Field(20_000, ge=1, description="Most sessions of an edge; a full one is given no more.")

    @field_validator("shards")
    @classmethod
    def _divides(cls, value: int) -> int:
        if value < 1 or 256 % value:
            raise ValueError("must be a divisor of 256")
        return value
