"""What the broker's plugin, a rule or the front publishes when a device comes or goes."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fleet.wire.identity import parse_username


class Presence(BaseModel):
    """A change of presence; `epoch` rises with every connection, so that an old message is told from a new one.

    `expired` says of a device that went that nothing was heard of it for one and a half keep-alives: it is gone, where
    one whose connection broke is back within seconds. A broker that does not know the reason leaves it out.
    `user` is the user name with which the device connected: who the broker let in, where bootstrap only tells who
    asked. It comes with `online`; it is empty where the broker does not say it, or says what is no user name of ours.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)
    online: bool
    epoch: int = Field(ge=0, lt=2**53)
    expired: bool = False
    user: str = ""

    @field_validator("user", mode="before")
    @classmethod
    def _known(cls, value: object) -> str:
        # Presence itself counts all the same: a device that came must not be missed for a name.
        name = parse_username(value) if isinstance(value, str) else None
        return value if isinstance(value, str) and name is not None and name.kind == "device" else ""


def parse(payload: bytes) -> Presence | None:
    try:
        return Presence.model_validate_json(payload)
    except ValidationError:
        return None
