"""The fields of the server's answer to a hello that the check of audio needs."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

_Hex = Annotated[str, StringConstraints(pattern="^[0-9a-fA-F]{32}$")]
_NOWHERE = ("127.0.0.1", 9)
"""The address in the answer to a refused hello (`fleet.roles.worker.sessions.opener`)."""


class _Udp(BaseModel):
    model_config = ConfigDict(extra="ignore")
    server: str
    port: int
    key: _Hex
    nonce: _Hex


class HelloAnswer(BaseModel):
    """The server's hello, which opens a session."""

    model_config = ConfigDict(extra="ignore")
    type: Literal["hello"]
    session_id: str = ""
    udp: _Udp

    @property
    def session(self) -> str:
        return self.session_id

    @property
    def host(self) -> str:
        return self.udp.server

    @property
    def port(self) -> int:
        return self.udp.port

    @property
    def key(self) -> bytes:
        return bytes.fromhex(self.udp.key)

    @property
    def ssrc(self) -> int:
        return int(self.udp.nonce[8:16], 16)

    @property
    def refused(self) -> bool:
        """Whether it refuses the session: then its address leads nowhere, so that the device does not wait."""
        return (self.host, self.port) == _NOWHERE


def read_hello_answer(payload: bytes) -> HelloAnswer | None:
    try:
        return HelloAnswer.model_validate_json(payload)
    except ValidationError:
        return None
