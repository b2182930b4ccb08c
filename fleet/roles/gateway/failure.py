"""Failures of requests, and the error messages for clients."""

from fleet.ground.errors import FleetError
from fleet.wire.gateway import ErrorCode, RequestRefused
from fleet.wire.gateway_messages import Failure


class RequestFailed(FleetError):
    """The answer to a `text_input` is an error message."""

    def __init__(self, code: ErrorCode, message: str, details: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.failure = Failure(code=code, message=message, details=details or message)


def explain(refused: RequestRefused) -> Failure:
    """Return the error message for a refused request."""
    return Failure(code=refused.code, message=refused.message, details=refused.details or refused.message)
