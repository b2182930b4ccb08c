"""`scripts/dashboard-picture`: a load run under a real Prometheus, and the dashboard drawn from what it recorded."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from tests.dashboard.board import Panel, filters, rate_interval, read
from tests.dashboard.drawing import Span, draw
from tests.dashboard.load import Load
from tests.dashboard.prometheus import SCRAPE_SECONDS, Prometheus, Series, Targets, running
from tests.dashboard.shot import shoot
from tests.support.load_site import LoadSite, load_site

PICTURE = Path(__file__).parents[2] / "docs/operating/dashboard.png"
_SEED = 1
Shown = Sequence[tuple[Panel, Sequence[Series]]]


def main() -> int:
    """Return 1 when an expectation of the load was not met."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="fleet-dashboard-") as name:
        return asyncio.run(_run(options, Path(name)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dashboard-picture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0, help="length of the load")
    parser.add_argument("--devices", type=int, default=16, help="people who talk at the same time")
    parser.add_argument("--out", type=Path, default=PICTURE, help="the picture, a PNG")
    return parser


async def _run(options: argparse.Namespace, folder: Path) -> int:
    async with Steering(LOOPBACK, 0) as models:
        with load_site(folder, models.url) as site:
            await asyncio.to_thread(site.wait_ready)
            async with running(_targets(site), folder) as prometheus:
                load = Load(site, models, folder, _SEED)
                begin = time.time()
                await load.run(options.devices, options.minutes * 60)
                span = Span(begin, load.until, SCRAPE_SECONDS)
                shown = await _ask(prometheus, span)
                _tell(load, shown, await prometheus.alerts(), await prometheus.down())
    day = time.strftime("%Y-%m-%d", time.gmtime(begin))
    notes = (
        f"{options.devices} simulated devices for {options.minutes:g} minutes, {load.turns} turns, on {day} (UTC); "
        "2 workers, 2 edges, api, gateway, front; each worker restarted once, troubles on purpose. "
        "Drawn by scripts/dashboard-picture, not by Grafana.",
    )
    await asyncio.to_thread(shoot, draw(shown, span, "fleet", notes, filters()), options.out)
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} KB")
    return bool(load.errors)


def _targets(site: LoadSite) -> Targets:
    targets: dict[str, list[tuple[str, int]]] = {}
    for name, port in site.ports.items():
        targets.setdefault(name.partition("-")[0], []).append((name, port))
    return targets


async def _ask(prometheus: Prometheus, span: Span) -> Shown:
    """Return every panel with the series of its queries."""
    window = rate_interval(SCRAPE_SECONDS, span.step)
    shown = []
    for panel in read():
        series: list[Series] = []
        for query in panel.queries:
            series += await prometheus.read(query, span.begin, span.end, span.step, window)
        shown.append((panel, series))
    return shown


def _tell(load: Load, shown: Shown, alerts: Sequence[tuple[str, str]], down: Sequence[str]) -> None:
    """Write what each panel shows: the range of each of its series, and the last value."""
    for panel, series in shown:
        if panel.kind == "row":
            continue
        print(f"{panel.title}{'' if series else ': no data'}")
        for one in series:
            values = [value for _, value in one.points]
            print(f"  {one.name or '(all)'}: {min(values):.4g} to {max(values):.4g}, at last {values[-1]:.4g}")
    print(f"alerts: {', '.join(f'{name} {state}' for name, state in alerts) or 'none'}")
    print(f"not scraped: {', '.join(down) or 'none'}")
    for error in load.errors:
        print(f"not as expected: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
