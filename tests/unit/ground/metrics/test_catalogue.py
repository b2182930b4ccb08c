"""What is defined, where it is named, and that nobody outside can make new time series."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from fleet.adapters.redis.devices.traces import RefusalReason
from fleet.core.text.phrases import HelloRefusal
from fleet.ground.metrics import audio, broker, http
from fleet.ground.metrics.catalogue import LONGEST_CELL, all_metrics, table
from fleet.ground.metrics.definition import OTHER, Metric, slug
from fleet.roles.api.throttle import LimitedRequest
from fleet.roles.worker.plugin_counts import KINDS
from fleet.wire import gateway, jsonrpc
from tests.support.every import for_every

ROOT = Path(__file__).parents[4]
WANTED = {
    "fleet_turn_e2e_latency_seconds",
    "fleet_turn_end_of_turn_delay_seconds",
    "fleet_turn_transcription_delay_seconds",
    "fleet_turn_llm_ttft_seconds",
    "fleet_turn_llm_ttfs_seconds",
    "fleet_turn_tts_ttfb_seconds",
    "fleet_tool_call_duration_seconds",
    "fleet_hello_latency_seconds",
    "fleet_udp_first_uplink_delay_seconds",
    "fleet_udp_loss_ratio",
    "fleet_downlink_frame_lateness_seconds",
    "fleet_devices_online",
    "fleet_sessions",
    "fleet_pending_calls",
    "fleet_shards_owned",
    "fleet_mailbox_lag_seconds",
}
MOST_SERIES = 400
ROLES = {"worker", "edge", "front", "api", "gateway", "control"}
_NAME = re.compile(r"\b(?:fleet|process)_[a-z0-9_]+")
_OURS_ELSEWHERE = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def sources(folder: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "fleet/roles" / folder).rglob("*.py")))


def series() -> set[str]:
    """Return every name that a query may use."""
    found = {metric.series for metric in all_metrics()} | _OURS_ELSEWHERE
    for metric in all_metrics():
        if metric.kind == "histogram":
            found |= {f"{metric.name}_{part}" for part in ("bucket", "count", "sum")}
    return found


def expressions() -> Iterator[str]:
    board = json.loads((ROOT / "deploy/grafana/fleet.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    rules = (ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8")
    yield from re.findall(r"expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", rules)


def test_what_the_field_measures_is_there() -> None:
    assert {metric.name for metric in all_metrics()} >= WANTED


@for_every("metric", all_metrics())
def test_a_metric_is_named_as_prometheus_wants_and_has_few_series(metric: Metric) -> None:
    assert re.fullmatch(r"fleet_[a-z0-9_]+", metric.name)
    assert not metric.name.endswith("_total")
    if metric.kind == "histogram":
        assert metric.name.endswith(("_seconds", "_ratio"))
    assert metric.meaning.endswith(".")
    assert metric.roles and set(metric.roles) <= ROLES
    count = 1
    for known in metric.labels.values():
        assert len(known) == len(set(known))
        count *= len(known) + 1
    assert count <= MOST_SERIES


@for_every("metric", all_metrics())
def test_no_value_from_outside_becomes_a_label(metric: Metric) -> None:
    strange = ["02:00:00:00:00:01", "a-tool-of-a-device", ""]
    for value in strange:
        assert metric.known_values([value] * len(metric.labels)) == (OTHER,) * len(metric.labels)


def test_every_reason_for_which_an_edge_drops_something_is_known() -> None:
    counted = set(re.findall(r'(?:counters|_drops)\["(\w+)"\]', sources("edge")))
    counted |= set(re.findall(r'counters\["\w+" if [^]]*? else "(\w+)"\]', sources("edge")))
    assert counted - {"received", "coughs"} <= set(audio.DROPS)


def test_every_reason_for_which_a_worker_refuses_something_is_known() -> None:
    hellos = {slug(f"hello: {phrase}") for phrase in get_args(HelloRefusal)}
    codes = (jsonrpc.NOT_JSON, jsonrpc.INVALID_REQUEST, jsonrpc.NO_METHOD, jsonrpc.BAD_PARAMS, jsonrpc.SERVER_ERROR)
    written = {slug(text) for text in re.findall(r'_counts\["([^"]+)"\]', sources("worker"))}
    plugin = {slug(f"broker: {kind}") for kind in KINDS}
    assert hellos | {slug(f"registrar: {code}") for code in codes} | plugin | written <= set(broker.REFUSALS)


def test_every_reason_of_the_api_and_the_front_is_known() -> None:
    written = {slug(text) for text in re.findall(r'(?:_counts\[|RefusedRequest\(\s*)"([^"]+)"', sources("api"))}
    written |= {slug(f"address: {request}") for request in get_args(LimitedRequest)}
    written |= {slug(f"bootstrap: {reason}") for reason in get_args(RefusalReason)}
    for path in ("http/connection.py", "tls/listener.py"):
        text = (ROOT / "fleet/adapters/net" / path).read_text(encoding="utf-8")
        written |= {slug(one) for one in re.findall(r'(?:counts\[|\bend, |\bend\()"([^"]+)"', text)}
    limited = {"activation", "bootstrap", "input", "photo"}
    written |= {slug(f"device: {door}") for door in limited}
    assert written == set(http.API_REFUSALS)
    how = r'(?:counts\[|\.end\(|\.end = |else |_drop\(head, step, |ConnectRefused\()"([a-z][^"]+)"'
    front = set(re.findall(how, sources("front")))
    assert {slug(text) for text in front} <= set(http.FRONT)


def test_the_errors_of_the_gateway_are_known() -> None:
    codes = {code.lower() for code in gateway.ERROR_CODES}
    known = set(http.gateway_refusals.labels["code"])
    assert known <= codes


def test_every_query_of_dashboard_and_alerts_names_what_exists() -> None:
    asked = [name for expression in expressions() for name in _NAME.findall(expression)]
    assert len(asked) > 50
    assert set(asked) <= series()


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(expressions())
    assert [metric.name for metric in all_metrics() if metric.name not in shown] == []


def test_every_alert_has_a_runbook() -> None:
    rules = (ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8")
    books = (ROOT / "docs/operating/alerts.md").read_text(encoding="utf-8")
    names = re.findall(r"alert: (\w+)", rules)
    assert len(names) > 10
    assert re.findall(r"^## (\w+)$", books, re.MULTILINE) == names
    assert re.findall(r"alerts\.md#(\w+)", rules) == [name.lower() for name in names]


def test_the_reference_is_that_of_the_code() -> None:
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("<!-- python -m fleet.ground.metrics -->\n\n")
    assert rest.partition("\n\n#")[0] + "\n" == table(), (
        "write the output of `python -m fleet.ground.metrics` into the page"
    )


def test_what_is_too_long_for_a_cell_stands_below_the_table() -> None:
    rows, _, below = table().partition("\n\n")
    assert max(len(cell) for row in rows.splitlines() for cell in row.split(" | ")) <= LONGEST_CELL
    for metric in all_metrics():
        shown = table().replace("\n  ", " ") if f"- `{metric.series}`:" in below else rows
        assert metric.meaning in shown, metric.series
        assert all(value in shown for known in metric.labels.values() for value in known), metric.series
