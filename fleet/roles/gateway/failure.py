"""Why a request ends without an answer."""

from fleet.ground.errors import FleetError
from fleet.wire.gateway import ErrorCode, RequestRefused
from fleet.wire.gateway_messages import Failure


class RequestFailed(FleetError):
    """A `text_input` ends with an error message."""

    def __init__(self, code: ErrorCode, message: str, details: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.failure = Failure(code=code, message=message, details=details or message)


def explain(refused: RequestRefused) -> Failure:
    """Return what a client is told of a refusal."""
    return Failure(code=refused.code, message=refused.message, details=refused.details or refused.message)
