"""What has changed between two results of a benchmark."""

import io
import json
from pathlib import Path

import pytest
from pydantic import JsonValue
from rich.console import Console

from fleet.ground.errors import ConfigError
from tests.benchmarks.compare import figures_of, read_figures, show_changes


def spread(median: float, by: float = 5) -> JsonValue:
    return {"median": median, "least": median - by, "most": median + by}


def result(worker: float, redis: float, p50: float) -> dict[str, JsonValue]:
    cases: list[JsonValue] = [
        {"devices": devices, "hello": {"us": {"worker": spread(worker + devices), "redis": spread(redis)}}, "count": 9}
        for devices in (100, 1000)
    ]
    return {"machine": {"cpu": spread(1)}, "cases": [*cases, {"devices": 7, "ms": {"p50": p50, "p99": 2.0, "most": 3}}]}


def shown(before: dict[str, JsonValue], now: dict[str, JsonValue]) -> dict[str, list[str]]:
    console = Console(width=200, record=True, file=io.StringIO())
    show_changes(console, figures_of(before), figures_of(now))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.export_text().splitlines()]
    return {row[0]: row[1:] for row in rows if row}


def test_figures_are_named_by_their_case() -> None:
    figures = figures_of(result(300, 90, 1.5))
    assert figures["cases devices=100 hello us worker"].median == 400
    assert figures["cases devices=1000 hello us worker"].median == 1300
    assert figures["cases devices=7 ms p50"].median == 1.5
    assert not any("machine" in name or "count" in name for name in figures)


def test_a_change_is_shown_with_its_ratio_and_marked_beyond_the_spread() -> None:
    table = shown(result(300, 90, 1.5), result(100, 93, 3.0))
    assert table["cases devices=100 hello us worker"] == ["400.0", "200.0", "0.50", "*"]
    assert table["cases devices=100 hello us redis"] == ["90.0", "93.0", "1.03", ""]
    assert table["cases devices=7 ms p50"] == ["1.5", "3.0", "2.00", "*"]


def test_figures_that_only_one_result_has_are_left_out() -> None:
    before = result(300, 90, 1.5)
    before["cases"] = before["cases"][:1] if isinstance(before["cases"], list) else None
    assert set(shown(before, result(100, 93, 3.0))) == {
        "cases devices=100 hello us worker",
        "cases devices=100 hello us redis",
    }


def test_a_file_without_figures_is_an_error_of_the_user(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    for path in (broken, tmp_path / "missing.json"):
        with pytest.raises(ConfigError, match="cannot read the figures"):
            read_figures(path)
    fine = tmp_path / "fine.json"
    fine.write_text(json.dumps(result(1, 2, 3)), encoding="utf-8")
    assert len(read_figures(fine)) == 6
