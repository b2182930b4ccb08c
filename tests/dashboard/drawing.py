"""Panels as one SVG, laid out as the dashboard's grid says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from tests.dashboard.board import COLUMNS, Panel
from tests.dashboard.prometheus import Series
from tests.dashboard.units import ticks, write

WIDTH = 1560
ROW = 27
GAP = 8
HEAD = 64
_COLORS = (
    *("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c0d8ff"),
    *("#ffa6b0", "#37872d", "#fade2a", "#447ebc"),
)
_STYLE = """
text { font-family: Inter, "Noto Sans", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #ccccdc; font-size: 11px }
.title { font-size: 13px; font-weight: 500 } .row { font-size: 15px; font-weight: 600 } .faint { fill: #9a9ba6 }
.big { font-size: 38px; font-weight: 600; fill: #73bf69 } .head { font-size: 20px; font-weight: 600 }
.panel { fill: #181b1f; stroke: #2c3235 } .grid { stroke: #2c3235 } .line { fill: none; stroke-width: 1.5 }
"""
_LETTER = 6.1
"""Mean width of a letter of a legend."""
_LEGEND = 16


@dataclass(frozen=True, slots=True)
class Span:
    """The time on the horizontal axis, and how far apart two values are, in seconds."""

    begin: float
    end: float
    step: float


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels."""

    x: float
    y: float
    w: float
    h: float


_FILTER = Box(0, 12, 104, 24)
"""Its place from the left is counted from the right end of the picture."""


def draw(
    panels: Sequence[tuple[Panel, Sequence[Series]]],
    span: Span,
    heading: str,
    notes: Sequence[str],
    filters: Sequence[str] = (),
) -> str:
    """Return the whole picture.

    Args:
        panels: Each with its series.
        span: Of the horizontal axes.
        heading: What stands above all panels.
        notes: Lines below it.
        filters: Labels of variables, of which everything is chosen.
    """
    bottom = max(panel.place.y + panel.place.h for panel, _ in panels)
    height = HEAD + bottom * ROW + GAP
    parts = [f'<text class="head" x="{GAP + 4}" y="28">{escape(heading)}</text>']
    parts += [
        f'<text class="faint" x="{GAP + 4}" y="{47 + 14 * at}">{escape(note)}</text>' for at, note in enumerate(notes)
    ]
    for at, name in enumerate(reversed(filters)):
        parts += _filter(name, WIDTH - GAP - (at + 1) * _FILTER.w)
    for panel, series in panels:
        parts += _panel(panel, series, span)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    back = f'<rect width="{WIDTH}" height="{height}" fill="#111217"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>{back}{"".join(parts)}</svg>'


def _filter(name: str, x: float) -> list[str]:
    box, middle = _FILTER, _FILTER.y + _FILTER.h / 2 + 4
    return [
        f'<rect class="panel" x="{x:.1f}" y="{box.y}" width="{box.w - GAP}" height="{box.h}" rx="3"/>',
        f'<text class="faint" x="{x + 10:.1f}" y="{middle}">{escape(name)}</text>',
        f'<text x="{x + 50:.1f}" y="{middle}">All</text>',
    ]


def _panel(panel: Panel, series: Sequence[Series], span: Span) -> list[str]:
    place, column = panel.place, (WIDTH - GAP) / COLUMNS
    box = Box(GAP + place.x * column, HEAD + place.y * ROW, place.w * column - GAP, place.h * ROW - GAP)
    if panel.kind == "row":
        return [f'<text class="row" x="{box.x + 4}" y="{box.y + 16}">{escape(panel.title)}</text>']
    parts = [
        f'<rect class="panel" x="{box.x:.1f}" y="{box.y}" width="{box.w:.1f}" height="{box.h}" rx="3"/>',
        f'<text class="title" x="{box.x + 10:.1f}" y="{box.y + 19}">{escape(panel.title)}</text>',
    ]
    if not series:
        middle = f'x="{box.x + box.w / 2:.1f}" y="{box.y + box.h / 2 + 8:.1f}" text-anchor="middle"'
        return [*parts, f'<text class="faint" {middle}>No data</text>']
    inner = Box(box.x + 10, box.y + 28, box.w - 20, box.h - 34)
    return parts + (_stat if panel.kind == "stat" else _plot)(panel, series, span, inner)


def _stat(panel: Panel, series: Sequence[Series], span: Span, box: Box) -> list[str]:
    """Return the newest value above its past."""
    points = series[0].points
    top = max(value for _, value in points) or 1.0
    shown = Box(box.x - 9, box.y + 40, box.w + 18, box.h - 36)
    line = _coordinates(points, span, top, shown)
    area = f"{line} {shown.x + shown.w:.1f},{shown.y + shown.h} {shown.x:.1f},{shown.y + shown.h}"
    middle = f'x="{box.x + box.w / 2:.1f}" y="{box.y + 30}" text-anchor="middle"'
    return [
        f'<polygon points="{area}" fill="#73bf69" fill-opacity="0.15"/>',
        f'<polyline class="line" points="{line}" stroke="#73bf69" stroke-opacity="0.5"/>',
        f'<text class="big" {middle}>{escape(write(points[-1][1], panel.unit))}</text>',
    ]


def _plot(panel: Panel, series: Sequence[Series], span: Span, box: Box) -> list[str]:
    rows = _legend([one.name for one in series], box.w)
    marks = ticks(max(value for one in series for _, value in one.points), panel.unit)
    left = 6 + max(len(write(mark, panel.unit)) for mark in marks) * _LETTER
    area = Box(box.x + left, box.y + 4, box.w - left - 4, box.h - 24 - _LEGEND * len(rows))
    parts = _axes(marks, panel.unit, span, area)
    for at, one in enumerate(series):
        parts += _line(one, span, marks[-1], area, _color(at))
    for row, names in enumerate(rows):
        parts += _keys(names, Box(box.x, box.y + box.h - _LEGEND * (len(rows) - row) + 12, box.w, _LEGEND))
    return parts


def _axes(marks: Sequence[float], unit: str, span: Span, area: Box) -> list[str]:
    parts = []
    for mark in marks:
        y = area.y + area.h * (1 - mark / marks[-1])
        parts.append(f'<path class="grid" d="M{area.x:.1f},{y:.1f}h{area.w:.1f}"/>')
        text = escape(write(mark, unit))
        parts.append(f'<text class="faint" x="{area.x - 5:.1f}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    every = next(step for step in (30, 60, 120, 300, 600, 1800) if (span.end - span.begin) / step <= area.w / 55)
    at = math.ceil(span.begin / every) * every
    while at <= span.end:
        x = area.x + area.w * (at - span.begin) / (span.end - span.begin)
        time = datetime.fromtimestamp(at, UTC).strftime("%H:%M" if every >= 60 else "%H:%M:%S")
        parts.append(f'<path class="grid" d="M{x:.1f},{area.y:.1f}v{area.h:.1f}"/>')
        parts.append(
            f'<text class="faint" x="{x:.1f}" y="{area.y + area.h + 14:.1f}" text-anchor="middle">{time}</text>'
        )
        at += every
    return parts


def _line(series: Series, span: Span, top: float, area: Box, color: str) -> list[str]:
    """Return a series; where values are missing the line is broken, and one that stands alone is a dot."""
    pieces: list[list[tuple[float, float]]] = []
    for point in series.points:
        if not pieces or point[0] - pieces[-1][-1][0] > span.step * 1.5:
            pieces.append([])
        pieces[-1].append(point)
    parts = []
    for piece in pieces:
        drawn = _coordinates(piece, span, top, area)
        if len(piece) > 1:
            parts.append(f'<polyline class="line" points="{drawn}" stroke="{color}"/>')
        else:
            x, _, y = drawn.partition(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="1.8" fill="{color}"/>')
    return parts


def _coordinates(points: Sequence[tuple[float, float]], span: Span, top: float, area: Box) -> str:
    length = span.end - span.begin
    return " ".join(
        f"{area.x + area.w * (at - span.begin) / length:.1f},{area.y + area.h * (1 - min(value / top, 1)):.1f}"
        for at, value in points
    )


def _legend(names: Sequence[str], width: float) -> list[list[tuple[int, str]]]:
    """Return names with their numbers in as many rows as they need."""
    rows: list[list[tuple[int, str]]] = [[]]
    used = 0.0
    for at, name in enumerate(names):
        wide = _wide(name)
        if rows[-1] and used + wide > width:
            rows.append([])
            used = 0.0
        rows[-1].append((at, name))
        used += wide
    return rows


def _keys(names: Sequence[tuple[int, str]], box: Box) -> list[str]:
    parts, x = [], box.x
    for at, name in names:
        parts.append(f'<path d="M{x:.1f},{box.y - 4:.1f}h12" stroke="{_color(at)}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 17:.1f}" y="{box.y:.1f}">{escape(name)}</text>')
        x += _wide(name)
    return parts


def _wide(name: str) -> float:
    return 30 + _LETTER * len(name)


def _color(at: int) -> str:
    return _COLORS[at % len(_COLORS)]
