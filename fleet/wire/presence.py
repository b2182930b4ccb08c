"""The message that the broker's plugin, a rule or the front publishes when a device connects or disconnects."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fleet.wire.identity import parse_username


class Presence(BaseModel):
    """A change of presence; `epoch` rises with every connection, so that older messages can be recognised.

    `expired`: the device sent nothing for one and a half keep-alives, so it is gone; a device whose connection broke
    returns within seconds. A broker that does not know the reason leaves it out. `user` is the user name with which the
    device connected: the broker has checked it, while any client can ask bootstrap. It comes with `online`, and is
    empty if the broker does not report it or it is not one of fleet's user names.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)
    online: bool
    epoch: int = Field(ge=0, lt=2**53)
    expired: bool = False
    user: str = ""

    @field_validator("user", mode="before")
    @classmethod
    def _known(cls, value: object) -> str:
        # An unknown name does not invalidate the presence: a connected device must not be missed.
        name = parse_username(value) if isinstance(value, str) else None
        return value if isinstance(value, str) and name is not None and name.kind == "device" else ""


def parse(payload: bytes) -> Presence | None:
    try:
        return Presence.model_validate_json(payload)
    except ValidationError:
        return None
