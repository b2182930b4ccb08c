"""The dashboard's picture: what is asked for each panel, how values are written, and where lines are drawn."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest

from tests.dashboard.board import Panel, Place, Query, filters, rate_interval, read
from tests.dashboard.drawing import GAP, HEAD, ROW, WIDTH, Span, draw
from tests.dashboard.prometheus import Series, configure
from tests.dashboard.shot import reduce, shoot
from tests.dashboard.units import ticks, write
from tests.support.browser import LIMIT, running_browser

SPAN = Span(1000.0, 1100.0, 5.0)
PLOT = Panel("timeseries", "A <plot>", Place(0, 0, 12, 8), "s", (Query("up", "{{role}}"),))


def test_every_panel_of_the_dashboard_is_read() -> None:
    panels = read()
    assert {panel.kind for panel in panels} == {"row", "stat", "timeseries"}
    assert all(panel.queries for panel in panels if panel.kind != "row")
    assert all(panel.place.x + panel.place.w <= 24 for panel in panels)


def test_a_query_is_asked_with_the_rate_interval_that_grafana_takes() -> None:
    assert rate_interval(scrape=15, step=15) == 60
    assert rate_interval(scrape=15, step=120) == 135
    query = Query("rate(a[$__rate_interval])", "{{role}} {{place}}")
    assert query.at(60) == "rate(a[60s])"
    filtered = Query('a{site=~"$site", role=~"$role"}', "")
    assert filtered.at(60) == 'a{site=~".*", role=~".*"}'
    assert filtered.at(60, site="here", role="edge|api") == 'a{site=~"here", role=~"edge|api"}'
    assert query.name({"role": "edge", "place": "here"}) == "edge here"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (0.0123, "s", "12.3 ms"),
        (1.25, "s", "1.25 s"),
        (0.055, "percentunit", "5.5%"),
        (50 * 1024 * 1024, "bytes", "50 MiB"),
        (12_345, "short", "12.3 K"),
        (0.5, "ops", "0.5 ops/s"),
    ],
)
def test_values_are_written_with_their_units(value: float, unit: str, text: str) -> None:
    assert write(value, unit) == text


@pytest.mark.parametrize("top", [0.0, 0.003, 0.73, 1.0, 16.0, 99.0])
def test_an_axis_has_few_round_lines_and_ends_above_all(top: float) -> None:
    marks = ticks(top, "s")
    assert marks[0] == 0
    assert marks[-1] >= top
    assert 2 <= len(marks) <= 6


def test_a_line_is_broken_where_values_are_missing() -> None:
    series = Series("edge", ((1000.0, 0.0), (1005.0, 1.0), (1050.0, 1.0), (1055.0, 0.5), (1090.0, 1.0)))
    picture = draw([(PLOT, [series])], SPAN, "fleet", ["a & b"])
    assert picture.count('<polyline class="line"') == 2
    assert picture.count("<circle") == 1
    assert "A &lt;plot&gt;" in picture
    assert "a &amp; b" in picture
    lines = [one.split() for one in re.findall(r'<polyline class="line" points="([^"]+)"', picture)]
    xs = [float(point.partition(",")[0]) for line in lines for point in line]
    ys = [float(point.partition(",")[2]) for line in lines for point in line]
    assert xs == sorted(xs)
    assert ys[0] > ys[3] > ys[1] == ys[2]
    assert HEAD < min(ys) <= max(ys) < HEAD + 8 * ROW - GAP


def test_the_filters_stand_beside_the_heading() -> None:
    assert filters() == ("Site", "Role")
    picture = draw([(PLOT, [])], SPAN, "fleet", [], filters())
    places = {name: float(x) for x, name in re.findall(r'<text class="faint" x="([^"]+)"[^>]*>(Site|Role)<', picture)}
    assert WIDTH / 2 < places["Site"] < places["Role"] < WIDTH


def test_a_panel_without_series_says_so() -> None:
    assert "No data" in draw([(PLOT, [])], SPAN, "fleet", [])
    assert "No data" not in draw([(PLOT, [Series("edge", ((1000.0, 1.0),))])], SPAN, "fleet", [])


def test_the_shipped_configuration_is_asked_on_the_loopback_address() -> None:
    config = configure({"worker": [("worker-1", 1001), ("worker-2", 1002)], "api": [("api", 1003)]}, 9090)
    jobs = {job["job_name"]: job["static_configs"] for job in config["scrape_configs"]}
    assert [one["targets"] for one in jobs["fleet"]] == [["127.0.0.1:1001"], ["127.0.0.1:1002"], ["127.0.0.1:1003"]]
    assert jobs["fleet"][1]["labels"] == {"role": "worker", "site": "load", "instance": "worker-2"}
    assert jobs["prometheus"] == [{"targets": ["127.0.0.1:9090"]}]
    assert all(name.startswith("/") for name in config["rule_files"])


def test_a_picture_keeps_its_most_frequent_colours() -> None:
    pixels = np.zeros((20, 60, 3), np.uint8)
    pixels[:, :, 0] = np.arange(1200).reshape(20, 60) % 250
    pixels[5:9, 3:9] = (10, 200, 30)
    pixels[19, :, 2] = 1
    colors, numbers = reduce(pixels)
    assert colors.shape == (256, 3)
    assert tuple(colors[0]) == (10, 200, 30)
    assert not numbers[5:9, 3:9].any()
    off = np.abs(colors[numbers].astype(int) - pixels)
    assert off[:19].max() == 0
    assert off.max() == 1


def test_a_picture_is_a_png_with_every_pixel(tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    left = '<rect width="20" height="30" fill="#123456"/>'
    shoot(f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">{left}</svg>', file)
    with running_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(LIMIT * 1000)
        page.set_content(f'<img src="data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}">')
        read = page.evaluate(_READ)
    assert read == [40, 30, 0x12, 0x34, 0x56]


_READ = """async () => {
  const image = document.images[0];
  await image.decode();
  const pen = new OffscreenCanvas(image.width, image.height).getContext('2d');
  pen.drawImage(image, 0, 0);
  return [image.width, image.height, ...pen.getImageData(19, 29, 1, 1).data.subarray(0, 3)];
}"""
