"""What the groups of settings share."""

import re
from typing import Any

from pydantic import AliasChoices, Field

PREFIX = "FLEET_"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - devices reach these ports from outside


def named(variable: str, default: Any, description: str) -> Any:
    """Return a field whose variable has no prefix, because its users know it by this name."""
    return Field(default, validation_alias=AliasChoices(variable, variable.lower()), description=description)


def canonical(mac: str) -> str:
    """Return a MAC as devices are named everywhere: lower case, with colons.

    Raises:
        ValueError: It is none.
    """
    digits = re.sub(r"[:\-._\s]", "", mac).lower()
    if not re.fullmatch("[0-9a-f]{12}", digits):
        raise ValueError(f"{mac.strip()!r} is no MAC")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))
