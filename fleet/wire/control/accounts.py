"""Accounts of operators, and their sign-ins."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from fleet.wire.control.shapes import Shape, Time
from fleet.wire.control.tokens import TokenName

Role = Literal["owner", "operator", "viewer"]
LEAST_PASSWORD = 12
"""Characters."""
_SECRET = Field(repr=False, json_schema_extra={"format": "password", "writeOnly": True})
Password = Annotated[str, StringConstraints(max_length=200), _SECRET]
NewPassword = Annotated[str, StringConstraints(min_length=LEAST_PASSWORD, max_length=200), _SECRET]


class Account(Shape):
    """An account. A disabled one cannot sign in."""

    id: int
    name: str
    role: Role
    disabled: bool
    created: Time
    last_sign_in: Time | None = None


class NewAccount(Shape):
    """An account to make. Its role allows at most what its maker may."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "ling", "role": "operator", "password": "correct horse battery"}]}
    )

    name: TokenName
    role: Role
    password: NewPassword


class AccountChange(Shape):
    """What changes of an account. Each change ends all its sign-ins."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "viewer"}]})

    role: Role | None = None
    disabled: bool | None = None


class PasswordReset(Shape):
    """A new password for an account of somebody else."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"password": "another horse battery"}]})

    password: NewPassword


class PasswordChange(Shape):
    """A new password for the own account."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"password": "correct horse battery", "new": "another horse battery"}]}
    )

    password: Password
    new: NewPassword


class SignInRequest(Shape):
    """Name and password. `tenant` is its short name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ling", "password": "correct horse battery"}]})

    name: Annotated[str, StringConstraints(max_length=63)]
    password: Password
    tenant: Annotated[str, StringConstraints(max_length=63)] = "default"


class FirstAccount(Shape):
    """The first owner, with the code that control shows while there is neither a token nor an account."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"code": "ABCD-EFGH-JKLM-NPQR", "name": "ling", "password": "correct horse battery"}]
        }
    )

    code: Annotated[str, StringConstraints(max_length=64)]
    name: TokenName
    password: NewPassword


class FirstAccountState(Shape):
    """Whether a code can be entered that makes the first owner.

    `owned` says whether there is a token or an account, `accounts` whether somebody can sign in with a password.
    """

    open: bool
    owned: bool
    accounts: bool


class AccountSession(Shape):
    """A sign-in. It ends at `expires`, and after `idle_seconds` without a request."""

    account: int
    name: str
    tenant: str
    role: Role
    scopes: list[str]
    began: Time
    expires: Time
    idle_seconds: int
