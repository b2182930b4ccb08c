"""How a setting is declared: its default, its limits and its documentation."""

import re
from typing import Any, ClassVar, Literal, TypedDict, Unpack

from pydantic import AliasChoices, BaseModel, Field

PREFIX = "FLEET_"
MODEL_PREFIXES = ("LLM_", "ASR_", "TTS_", "VISION_")
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - devices connect to these ports from other machines

Role = Literal["worker", "edge", "api", "gateway", "front", "control"]
ALL_ROLES: tuple[Role, ...] = ("worker", "edge", "api", "gateway", "front", "control")
Masked = Literal["value", "part", "file"]
"""The secret part of a setting: its value, a password or key in it, or the content of the file that it names."""


class Bounds(TypedDict, total=False):
    """The bounds of a number."""

    gt: float
    ge: float
    le: float


class Details(TypedDict, total=False):
    """Documentation beside the type, the default and the bounds."""

    unit: str
    syntax: str
    """The form of a value, where the type does not say it."""
    unset: str
    """The effective value while it is not set, where the default is None or empty."""
    equal: bool
    """Whether all processes that read it must have an equal value."""
    masked: Masked
    roles_only: bool
    """Whether only roles that run as separate processes read it, and `fleet up` does not."""


class Declaration(Bounds, Details, total=False):
    """The optional arguments of `setting`."""

    variable: str
    """Its variable, where that has no prefix FLEET_."""
    also: str
    """A second variable that sets it."""


class SettingGroup(BaseModel):
    """Settings that belong together. The docstring below each one describes its effect, in whole sentences."""

    title: ClassVar[str]


def setting(default: Any, roles: tuple[Role, ...], **more: Unpack[Declaration]) -> Any:
    """Return the field of a setting.

    Args:
        default: Its value while it is not set, or a function that returns it.
        roles: The roles that read it.
        more: See `Declaration`.
    """
    details: dict[str, Any] = {key: value for key, value in more.items() if key in Details.__annotations__}
    bounds: dict[str, Any] = {key: value for key, value in more.items() if key in Bounds.__annotations__}
    usual: dict[str, Any] = {"default_factory": default} if callable(default) else {"default": default}
    return Field(
        **usual,
        validation_alias=_names(more.get("variable"), more.get("also")),
        json_schema_extra={"roles": list(roles), **details},
        **bounds,
    )


def _names(variable: str | None, also: str | None) -> AliasChoices | None:
    """Return the variables and the keys of the file that set it; None for its own name with the prefix."""
    if variable is None:
        return None
    names = [variable, also] if also else [variable]
    keys = [name.removeprefix(PREFIX).lower() for name in names if name == variable or name.startswith(PREFIX)]
    return AliasChoices(*names, *keys)


def canonical_mac(mac: str) -> str:
    """Return a MAC in canonical form: lower case, with colons.

    Raises:
        ValueError: It is no MAC.
    """
    digits = re.sub(r"[:\-._\s]", "", mac).lower()
    if not re.fullmatch("[0-9a-f]{12}", digits):
        raise ValueError(f"{mac.strip()!r} is no MAC")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))
