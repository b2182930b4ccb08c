"""What the broker's plugin, a rule or the front publishes when a device comes or goes."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class Presence(BaseModel):
    """A change of presence; `epoch` rises with every connection, so that an old message is told from a new one.

    `expired` says of a device that went that nothing was heard of it for one and a half keep-alives: it is gone, where
    one whose connection broke is back within seconds. A broker that does not know the reason leaves it out.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)
    online: bool
    epoch: int = Field(ge=0, lt=2**53)
    expired: bool = False
    user: str = ""
    """Of a device that came: the user name with which it connected; empty where the broker does not tell."""


def parse(payload: bytes) -> Presence | None:
    try:
        return Presence.model_validate_json(payload)
    except ValidationError:
        return None
