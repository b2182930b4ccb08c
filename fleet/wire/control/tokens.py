"""Tokens, and who one is."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from fleet.wire.control.shapes import GivenTime, Shape, Time

TokenName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,63}$")]
ScopeName = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,20}:[a-z]{1,20}$")]


class Me(Shape):
    """Who sends a request. `kind` is `operator` for a token of the operators' file, `account` for a sign-in."""

    kind: Literal["token", "operator", "account"]
    name: str
    tenant: str
    scopes: list[str]
    expires: Time | None = None


class NewToken(Shape):
    """A token to make: with at most the scopes of its maker, who cannot make one that outlives his own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "dashboard", "scopes": ["devices:read"]}]})

    name: TokenName
    scopes: Annotated[list[ScopeName], Field(min_length=1, max_length=64)]
    expires: GivenTime | None = None


class Token(Shape):
    """A token without its secret."""

    id: int
    name: str
    scopes: list[str]
    created: Time
    expires: Time | None = None
    last_used: Time | None = None


class MadeToken(Token):
    """A token that was just made. `token` is shown only now; it is null in the answer to a repeated request."""

    token: str | None


class FirstToken(Shape):
    """The code that control shows while there is no token."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": "ABCD-EFGH-JKLM-NPQR"}]})

    code: Annotated[str, StringConstraints(max_length=64)]
    name: TokenName = "first"
