"""One request to the API, before it is sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

Answer = TypeVar("Answer", bound=BaseModel)


class ClientError(Exception):
    """The API refused a request, or does not answer.

    Args:
        message: What went wrong, for people.
        status: Of the answer; 0 without one.
        code: For programs, such as `not-found`; empty without an answer of the API.
        errors: Faults of single fields.
    """

    def __init__(self, message: str, status: int = 0, code: str = "", errors: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.errors = status, code, errors


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """A request, and the model of its answer."""

    method: str
    path: str
    """Below `/v1`."""
    answer: type[Answer]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: BaseModel | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 30.0
    """Longest wait for a part of the answer."""

    def of_version(self, version: int) -> "Call[Answer]":
        """Return the call with the condition that nobody has changed the object since this version."""
        return replace(self, headers={**self.headers, "If-Match": f'"{version}"'})

    def after(self, cursor: str) -> "Call[Answer]":
        """Return the call for the next page."""
        return replace(self, query={**self.query, "cursor": cursor})

    @property
    def content(self) -> bytes | None:
        """The body as JSON; what was not set is not sent."""
        return None if self.body is None else self.body.model_dump_json(exclude_unset=True).encode()

    def read(self, status: int, content: bytes) -> Answer:
        """Return the answer.

        Raises:
            ClientError: It is a refusal, or no answer of this API.
        """
        if status >= 400:
            raise refusal(status, content)
        try:
            # A newer server may say more.
            return self.answer.model_validate_json(content or b"{}", extra="ignore")
        except ValidationError as error:
            raise ClientError("this is no answer of control; is the address right?", status) from error


class Nothing(BaseModel):
    """The answer without content."""


class _Refusal(BaseModel):
    detail: str = ""
    code: str = ""
    errors: tuple[dict[str, Any], ...] = ()


def refusal(status: int, content: bytes) -> ClientError:
    """Return the error that an answer states."""
    try:
        found = _Refusal.model_validate_json(content, extra="ignore")
    except ValidationError:
        found = _Refusal()
    return ClientError(found.detail or f"control answered with status {status}", status, found.code, found.errors)
