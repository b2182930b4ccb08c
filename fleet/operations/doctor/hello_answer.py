"""The fields of the server's answer to a hello that the check of audio needs."""

from typing import Annotated, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

_SixteenBytes = Annotated[bytes, Field(min_length=16, max_length=16)]
_NOWHERE = ("127.0.0.1", 9)
"""The address in the answer to a refused hello (`fleet.roles.worker.sessions.opener`)."""


class HelloAnswer(BaseModel):
    """The server's hello, which opens a session."""

    model_config = ConfigDict(val_json_bytes="hex")

    type: Literal["hello"]
    session: str = Field("", validation_alias="session_id")
    host: str = Field(validation_alias=AliasPath("udp", "server"))
    port: int = Field(validation_alias=AliasPath("udp", "port"))
    key: _SixteenBytes = Field(validation_alias=AliasPath("udp", "key"))
    nonce: _SixteenBytes = Field(validation_alias=AliasPath("udp", "nonce"))

    @property
    def ssrc(self) -> int:
        return int.from_bytes(self.nonce[4:8], "big")

    @property
    def refused(self) -> bool:
        """Whether it refuses the session: then its address leads nowhere, so that the device does not wait."""
        return (self.host, self.port) == _NOWHERE


def read_hello_answer(payload: bytes) -> HelloAnswer | None:
    try:
        return HelloAnswer.model_validate_json(payload)
    except ValidationError:
        return None
