"""How the options of a job are written on the command line."""

from typing import Any

from fleet.ground.errors import ConfigError
from fleet.ground.terminal import visible


def read_stages(text: str, soak: int = 0, sample: int = 20, *, approve: bool = False) -> list[dict[str, Any]]:
    """Return the stages of `20,10%,100%`: shares, or numbers of devices.

    Raises:
        ConfigError: A part is neither.
    """
    return [_stage(part.strip(), soak, sample, approve=approve) for part in text.split(",")]


def _stage(text: str, soak: int, sample: int, *, approve: bool) -> dict[str, Any]:
    size: dict[str, Any] = {"share": read_share(text)} if text.endswith("%") else {"count": _number(text)}
    return {**size, "soak_seconds": soak, "min_sample": sample, "approve": approve}


def read_share(text: str) -> float:
    """Return a share such as `5%` or `0.05`.

    Raises:
        ConfigError: It is none.
    """
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ConfigError(f"write a share such as 5%: {visible(text)}") from None


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"write a share such as 5% or a number of devices: {visible(text)}")
    return int(text)
