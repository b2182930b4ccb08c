"""Values as a dashboard writes them, and where an axis has its lines."""

import math
from collections.abc import Callable

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def write(value: float, unit: str) -> str:
    """Return a value in Grafana's unit of this name."""
    return _UNITS.get(unit, _short)(value)


def ticks(top: float, unit: str, lines: int = 4) -> list[float]:
    """Return at most so many round values from 0 up, the last one not below `top`."""
    if top <= 0:
        top = 1.0
    rough = top / lines
    if unit == "bytes":
        power = 2.0 ** math.floor(math.log2(rough))
        step = next(power * factor for factor in (1, 2) if power * factor >= rough)
    else:
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in _STEPS if power * factor >= rough * 0.999)
    return [step * number for number in range(math.ceil(top / step - 1e-9) + 1)]


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _short(value: float) -> str:
    return f"{_digits(value / 1000)} K" if abs(value) >= 10_000 else _digits(value)


def _seconds(value: float) -> str:
    if value == 0:
        return "0 s"
    if value < 0.001:
        return f"{_digits(value * 1e6)} µs"
    return f"{_digits(value * 1000)} ms" if value < 1 else f"{_digits(value)} s"


def _bytes(value: float) -> str:
    for name in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{_digits(value)} {name}"
        value /= 1024
    return f"{_digits(value)} GiB"


_UNITS: dict[str, Callable[[float], str]] = {
    "short": _short,
    "s": _seconds,
    "bytes": _bytes,
    "percentunit": lambda value: f"{_digits(value * 100)}%",
    "ops": lambda value: f"{_digits(value)} ops/s",
    "pps": lambda value: f"{_digits(value)} p/s",
}
