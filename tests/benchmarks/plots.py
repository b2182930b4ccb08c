"""Pictures of a run of `scripts/bench all`: what a hello costs against its rate, and operations against devices."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fleet.ground.errors import ConfigError

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 150, 40, 50
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")
_STYLE = "text{font:12px sans-serif}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
_RATE = re.compile(r"hello and goodbye, (\d+)/s")
_TICKS = 5

Points = Sequence[tuple[float, float]]


def draw_plots(figures: Path, folder: Path) -> list[Path]:
    """Write the pictures; return their paths.

    Raises:
        ConfigError: The file is not the result of `scripts/bench all`.
    """
    try:
        found = json.loads(figures.read_text(encoding="utf-8"))
        machine, servers, scale = found["machine"], found["servers"], found["scale"]
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{figures} has no figures of `scripts/bench all`: {error}") from error
    note = f"{machine['cpu']}, {machine['cores']} cores, load {machine['busy']:.1f}, {machine['date'][:10]}"
    known = [case for case in scale if case["shards"] == scale[0]["shards"]]
    pictures = {
        "rate.svg": plot("hello and goodbye, µs of CPU", "hellos a second", _against_rate(servers), note),
        "devices.svg": plot("µs of CPU", "known devices", _against_devices(known), note),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (folder / name).write_text(picture, encoding="utf-8")
    return [folder / name for name in pictures]


def _against_rate(servers: Sequence[dict[str, Any]]) -> dict[str, Points]:
    lines: dict[str, list[tuple[float, float]]] = {}
    for server in servers:
        for what, cost in server["operations"].items():
            if rate := _RATE.fullmatch(what):
                parts = ("all", "worker", "edge", "redis", "broker") if server["server"] == "fleet" else ("all",)
                for part in parts:
                    name = f"{server['server']}, {part}"
                    lines.setdefault(name, []).append((float(rate[1]), cost["us"][part]["median"]))
    return {name: sorted(points) for name, points in lines.items()}


def _against_devices(cases: Sequence[dict[str, Any]]) -> dict[str, Points]:
    def line(kind: str, part: str) -> Points:
        costs = ((case["devices"], case[kind]) for case in cases)
        return [(known, (cost.get("us") or cost)[part]["median"]) for known, cost in costs]

    return {
        "hello, all": line("hello", "all"),
        "hello, worker": line("hello", "worker"),
        "one more call": line("call_us", "all"),
        "packet up, edge": line("packet", "edge"),
    }


def plot(title: str, across: str, lines: Mapping[str, Points], note: str) -> str:
    """Return lines as an SVG; the horizontal axis is logarithmic, the vertical one begins at 0."""
    across_values = sorted({x for points in lines.values() for x, _ in points})
    left, right = math.log10(across_values[0]), math.log10(across_values[-1])
    step = _step(max(y for points in lines.values() for _, y in points) / _TICKS)

    def place(x: float, y: float) -> tuple[float, float]:
        part = (math.log10(x) - left) / (right - left or 1)
        up = y / (step * _TICKS) * (_HEIGHT - _TOP - _BOTTOM)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f'<style>{_STYLE}</style><rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        _text(_LEFT, 20, title),
        _text(_LEFT, _HEIGHT - 8, f"{across}; {note}"),
    ]
    for tick in range(_TICKS + 1):
        _, y = place(across_values[0], tick * step)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(8, y + 4, f"{tick * step:,g}"))
    parts += [_text(place(x, 0)[0] - 8, _HEIGHT - _BOTTOM + 18, f"{x:,.0f}") for x in across_values]
    for number, (name, points) in enumerate(lines.items()):
        color = _COLORS[number % len(_COLORS)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in points))
        parts.append(f'<path class="line" stroke="{color}" d="M{path}"/>')
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 12}" y="{_TOP + 18 * number}" style="fill:{color}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _step(least: float) -> float:
    """Return the distance of the grid's lines: 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _text(x: float, y: float, words: str, color: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}">{escape(words)}</text>'
