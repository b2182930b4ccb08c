"""What the groups of settings share: how a setting is declared, and what an operator is told of it."""

import re
from typing import Any, Literal, TypedDict, Unpack

from pydantic import AliasChoices, Field

PREFIX = "FLEET_"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - devices reach these ports from outside

Role = Literal["worker", "edge", "api", "gateway", "front"]
EVERY: tuple[Role, ...] = ("worker", "edge", "api", "gateway", "front")
Hidden = Literal["value", "part", "file"]
"""What of a setting is secret: all of its value, a password or key in it, what is in the file that it names."""


class Limits(TypedDict, total=False):
    """The edges of a number."""

    gt: float
    ge: float
    le: float


class Told(TypedDict, total=False):
    """What an operator is told beside the type, the default and the edges."""

    unit: str
    form: str
    """What a value looks like, where the type does not say it."""
    without: str
    """What counts while it is not set, where the default is None or empty."""
    same: bool
    """Whether all processes that read it must have one value."""
    hidden: Hidden
    alone: bool
    """Whether `fleet up` does not read it: it is for roles that run as processes of their own."""


class Declared(Limits, Told, total=False):
    """All that may be said of a setting."""

    variable: str
    """Its variable, where its users know it by a name without FLEET_."""
    also: str
    """A further variable that gives it."""


def setting(default: Any, meaning: str, readers: tuple[Role, ...], **more: Unpack[Declared]) -> Any:
    """Return the field of a setting.

    Args:
        default: Its value while nothing sets it.
        meaning: What it does, in whole sentences.
        readers: The roles that read it.
        more: See `Declared`.
    """
    told: dict[str, Any] = {key: value for key, value in more.items() if key in Told.__annotations__}
    edges: dict[str, Any] = {key: value for key, value in more.items() if key in Limits.__annotations__}
    return Field(
        default,
        description=meaning,
        validation_alias=_names(more.get("variable"), more.get("also")),
        json_schema_extra={"readers": list(readers), **told},
        **edges,
    )


def _names(variable: str | None, also: str | None) -> AliasChoices | None:
    """Return what gives a setting; None for its own name with the prefix."""
    if variable is None:
        return None
    return AliasChoices(variable, *((also,) if also else ()), variable.removeprefix(PREFIX).lower())


def canonical(mac: str) -> str:
    """Return a MAC as devices are named everywhere: lower case, with colons.

    Raises:
        ValueError: It is none.
    """
    digits = re.sub(r"[:\-._\s]", "", mac).lower()
    if not re.fullmatch("[0-9a-f]{12}", digits):
        raise ValueError(f"{mac.strip()!r} is no MAC")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))
