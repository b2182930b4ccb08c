"""Prometheus's own tools on what is shipped for it: configuration, alert rules and every query of the dashboard."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.dashboard.board import ALL, rate_interval, read
from tests.dashboard.prometheus import SHIPPED

LIMIT = 300.0
"""Seconds; the work is a matter of one, but a machine may be busy."""


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: scripts/setup --system prometheus")
    return found


def check(promtool: str, *command: str) -> str:
    """Run promtool, which must be content, and return what it says."""
    done = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_rules(expressions: list[str]) -> str:
    """Return queries as recording rules: Prometheus parses an expression only where it stands in something."""
    rules = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(expressions)]
    return json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})


def test_prometheus_takes_the_configuration_and_the_rules(promtool: str) -> None:
    said = check(promtool, "check", "config", str(SHIPPED / "prometheus.yml"))
    rules = yaml.safe_load((SHIPPED / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert f"{len(rules)} rules found" in said


def test_prometheus_takes_every_query_of_the_dashboard(promtool: str, tmp_path: Path) -> None:
    queries = [query.at(rate_interval(15, 15)) for panel in read() for query in panel.queries]
    assert len(queries) > 30
    file = tmp_path / "queries.yaml"
    file.write_text(as_rules(queries), encoding="utf-8")
    assert f"{len(queries)} rules found" in check(promtool, "check", "rules", str(file))


@pytest.mark.parametrize(
    ("site", "role", "found"),
    [(ALL, ALL, True), ("here|there", "worker", True), ("there", ALL, False), (ALL, "edge|api", False)],
    ids=["all", "chosen", "another site", "other roles"],
)
def test_every_panel_obeys_the_filters(promtool: str, tmp_path: Path, site: str, role: str, found: bool) -> None:
    """All series are of one role at one site; each query is asked what it shows there, and elsewhere."""
    queries = [query.at(60, site, role) for panel in read() for query in panel.queries]
    names = sorted({name for query in queries for name in re.findall(r"\b(?:fleet|process)_[a-z0-9_]+", query)})
    file = tmp_path / "tests.yaml"
    file.write_text(json.dumps({"evaluation_interval": "15s", "tests": [_filtered(names, queries, found)]}))
    check(promtool, "test", "rules", str(file))


def _filtered(names: list[str], queries: list[str], found: bool) -> dict[str, object]:
    """Return a test in which each query finds one series or none; what counts finds 1 or 0."""
    labels = 'job="fleet",instance="a",site="here",role="worker",le="+Inf"'
    series = [{"series": f"{name}{{{labels}}}", "values": _MOVING.get(name, "1+6x40")} for name in names]
    asked: list[dict[str, object]] = []
    for query in queries:
        if "vector(0)" in query:
            samples = [{"labels": "{}", "value": int(found)}]
        else:
            query, samples = f"count({query})", [{"labels": "{}", "value": 1}] if found else []
        asked.append({"expr": query, "eval_time": "10m", "exp_samples": samples})
    return {"interval": "15s", "input_series": series, "promql_expr_test": asked}


_MOVING = {"fleet_ready": "0x40"}
"""Series that a query only shows with other values than growing ones."""


def test_the_alerts_of_a_site_are_not_silenced_by_another(promtool: str, tmp_path: Path) -> None:
    def at(site: str, value: int) -> dict[str, str]:
        return {"series": f'fleet_shards_owned{{instance="a",site="{site}"}}', "values": f"{value}x60"}

    firing = [{"labels": '{site="there"}', "value": 1}]
    asked = 'count by (site) (ALERTS{alertname="FleetShardsWithoutOwner"})'
    test = {
        "interval": "1m",
        "input_series": [at("here", 16), at("there", 8)],
        "promql_expr_test": [{"expr": asked, "eval_time": "60m", "exp_samples": firing}],
    }
    file = tmp_path / "tests.yaml"
    file.write_text(json.dumps({"rule_files": [str(SHIPPED / "alerts.yaml")], "tests": [test]}), encoding="utf-8")
    check(promtool, "test", "rules", str(file))


def test_a_query_that_is_none_is_found(promtool: str, tmp_path: Path) -> None:
    file = tmp_path / "queries.yaml"
    file.write_text(as_rules(["sum(rate(fleet_turns_total))"]), encoding="utf-8")
    done = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode != 0


def test_every_alert_fires_when_it_should_and_only_then(promtool: str, tmp_path: Path) -> None:
    """All that the alerts are for goes on for an hour, at first in a measure that is no reason to wake anybody."""
    rules = yaml.safe_load((SHIPPED / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == list(CASES)
    quiet, loud = ({name: values for case in CASES.values() for name, values in case[at].items()} for at in (0, 1))
    firing = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in CASES]
    file = tmp_path / "tests.yaml"
    tests = [_after_an_hour(quiet, []), _after_an_hour(loud, firing)]
    wanted = {"rule_files": [str(SHIPPED / "alerts.yaml")], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(wanted), encoding="utf-8")
    check(promtool, "test", "rules", str(file))


def _after_an_hour(series: dict[str, str], firing: list[dict[str, object]]) -> dict[str, object]:
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "60m",
                "exp_samples": firing,
            }
        ],
    }


def _histogram(name: str, **buckets: str) -> dict[str, str]:
    """Return a histogram's series: `b0_5` is the bucket up to 0.5, `inf` the last one."""
    bounds = {key: "+Inf" if key == "inf" else key.removeprefix("b").replace("_", ".") for key in buckets}
    return {f'{name}_bucket{{instance="a",le="{bounds[key]}"}}': values for key, values in buckets.items()}


_EDGE = {'fleet_ready{instance="e",part="announced"}': "1x60"}
_E2E, _LOSS, _LATE = (
    "fleet_turn_e2e_latency_seconds",
    "fleet_udp_loss_ratio",
    "fleet_downlink_frame_lateness_seconds",
)
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "FleetProcessNotReady": (
        {'fleet_ready{instance="a",part="redis"}': "1x30 0 1x30"},
        {'fleet_ready{instance="a",part="redis"}': "1x50 0x10"},
    ),
    "FleetShardsWithoutOwner": (
        {'fleet_shards_owned{instance="a"}': "8x60", 'fleet_shards_owned{instance="b"}': "8x60"},
        {'fleet_shards_owned{instance="a"}': "8x60"},
    ),
    "FleetShardsNotHeard": (
        {'fleet_shards_disconnected{instance="a"}': "0x30 3 0x30"},
        {'fleet_shards_disconnected{instance="a"}': "0x50 3x10"},
    ),
    "FleetNoEdge": (_EDGE, {}),
    "FleetMailboxLag": (
        {'fleet_mailbox_lag_seconds{instance="a"}': "4x60"},
        {'fleet_mailbox_lag_seconds{instance="a"}': "4x50 9x10"},
    ),
    "FleetDevicesGone": (
        {'fleet_devices_online{instance="a"}': "100x55 80x5"},
        {'fleet_devices_online{instance="a"}': "100x55 50x5"},
    ),
    "FleetSlowAnswers": (
        _histogram(_E2E, b5_0="0+60x60", b8_0="0+61x60", inf="0+61x60"),
        _histogram(_E2E, b5_0="0+40x60", b8_0="0+60x60", inf="0+60x60"),
    ),
    "FleetTurnsFail": (
        {'fleet_turns_total{outcome="answered"}': "0+99x60", 'fleet_turns_total{outcome="failed"}': "0+1x60"},
        {'fleet_turns_total{outcome="answered"}': "0+80x60", 'fleet_turns_total{outcome="failed"}': "0+20x60"},
    ),
    "FleetProviderErrors": (
        {'fleet_provider_errors_total{provider="llm",kind="busy"}': "0+5x60"},
        {'fleet_provider_errors_total{provider="llm",kind="busy"}': "0+10x60"},
    ),
    "FleetUnknownCalls": (
        {
            'fleet_tool_calls_total{place="device",outcome="ok"}': "0+99x60",
            'fleet_tool_calls_total{place="device",outcome="unknown"}': "0+1x60",
        },
        {
            'fleet_tool_calls_total{place="device",outcome="ok"}': "0+9x60",
            'fleet_tool_calls_total{place="device",outcome="unknown"}': "0+1x60",
        },
    ),
    "FleetNoAudioPath": (
        {'fleet_turns_given_up_total{reason="no_audio_path"}': "0+1x60"},
        {'fleet_turns_given_up_total{reason="no_audio_path"}': "0+2x60"},
    ),
    "FleetAudioLoss": (
        _histogram(_LOSS, b0_02="0+9x60", b0_1="0+10x60", inf="0+10x60"),
        _histogram(_LOSS, b0_02="0+1x60", b0_1="0+10x60", inf="0+10x60"),
    ),
    "FleetLateAudio": (
        _histogram(_LATE, b0_1="0+1000x60", b0_2="0+1001x60", inf="0+1001x60"),
        _histogram(_LATE, b0_1="0+900x60", b0_2="0+1000x60", inf="0+1000x60"),
    ),
    "FleetForeignPackets": (
        {'fleet_edge_drops_total{instance="a",reason="unknown_ssrc"}': "0+6000x60"},
        {'fleet_edge_drops_total{instance="a",reason="unknown_ssrc"}': "0+18000x60"},
    ),
    "FleetDeviceAlerts": (
        {'fleet_alerts_open{instance="a",rule="silent"}': "3x60"},
        {'fleet_alerts_open{instance="a",rule="jobs"}': "1x60"},
    ),
}
"""For each alert what is no reason for it, and what is one, once a minute for an hour."""
