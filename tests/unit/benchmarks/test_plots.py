"""Pictures of a run of all benchmarks."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fleet.ground.errors import ConfigError
from tests.benchmarks.plots import draw_plots, plot

SVG = "{http://www.w3.org/2000/svg}"
PARTS = ("all", "worker", "edge", "redis", "broker")


def us(value: float) -> dict[str, object]:
    return {part: {"median": value, "least": value, "most": value} for part in PARTS}


def lines(picture: str) -> list[list[tuple[float, float]]]:
    root = ElementTree.fromstring(picture)
    found = [str(path.get("d")) for path in root.iter(f"{SVG}path") if path.get("class") == "line"]
    return [[(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)] for path in found]


def texts(picture: str) -> list[str]:
    return [str(text.text) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_rates_are_on_a_logarithmic_axis_and_costs_from_zero() -> None:
    picture = plot("µs", "a second", {"worker": [(10, 100), (100, 50), (1000, 0)]}, "a <cpu>")
    [[(x1, y1), (x2, y2), (x3, y3)]] = lines(picture)
    assert x2 - x1 == pytest.approx(x3 - x2)
    assert y2 - y1 == pytest.approx(y3 - y2)
    assert {"100", "20", "0", "1,000", "worker", "a second; a <cpu>"} <= set(texts(picture))


def test_pictures_show_every_rate_and_number_of_devices(tmp_path: Path) -> None:
    hellos = {f"hello and goodbye, {rate}/s": {"us": us(5000 / rate)} for rate in (20, 600)}
    cases = [
        {"devices": known, "shards": shards, "hello": {"us": us(500)}, "packet": {"us": us(12)}, "call_us": us(200)}
        for known, shards in ((100, 16), (100_000, 16), (100, 256))
    ]
    document = {
        "machine": {"cpu": "a cpu", "cores": 2, "busy": 0.5, "date": "2026-01-02T03:04:05"},
        "servers": [{"server": name, "operations": {"connect": {"us": us(1)}, **hellos}} for name in ("fleet", "up")],
        "scale": cases,
    }
    figures = tmp_path / "all.json"
    figures.write_text(json.dumps(document), encoding="utf-8")
    rate, devices = (path.read_text(encoding="utf-8") for path in draw_plots(figures, tmp_path / "new"))
    assert [len(line) for line in lines(rate)] == [2] * (len(PARTS) + 1)
    assert [len(line) for line in lines(devices)] == [2] * 4
    assert "100,000" in texts(devices)
    assert any("a cpu, 2 cores, load 0.5, 2026-01-02" in text for text in texts(rate))


def test_a_result_of_another_benchmark_is_an_error_of_the_user(tmp_path: Path) -> None:
    other = tmp_path / "hello.json"
    other.write_text('{"benchmark": "hello", "machine": {}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="bench all"):
        draw_plots(other, tmp_path)
