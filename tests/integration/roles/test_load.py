"""After a load that has every kind of trouble in it, every metric has a plausible value and every turn is one trace."""

import asyncio
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fleet.ground.metrics.catalogue import all_metrics
from fleet.ground.metrics.definition import OTHER, Metric
from fleet.ground.metrics.histogram import HistogramMetric
from fleet.workbench.conformance.context import CheckContext, Setup
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support import load_people as people
from tests.support.load_site import LoadSite, load_site
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.support.ports import LOOPBACK
from tests.support.scraped import Scraped
from tests.support.until import until

pytestmark = pytest.mark.scripted

TALKERS = 2
PATIENCE = 240.0
SESSIONS = TALKERS + 4
"""The talkers', that of the apologies, of the junk, of the one that is not heard, of the one that holds on."""
HEARD = SESSIONS - 1
ANSWERED = TALKERS * people.TURNS + 1
"""Turns whose answer was spoken; that of the device that is not heard was only written."""
ZERO: Mapping[str, str] = {
    "fleet_mailbox_lag_seconds": "workers read at once; see tests/integration/redis/test_shard_gauges.py",
    "fleet_embedded_restarts": "only `fleet up` has embedded servers; tests/integration/roles/test_up.py kills them",
    "fleet_log_lines_left_out": "roles log debug lines here, and then all; tests/security/test_logs.py has a flood",
    "fleet_interruptions": "nobody speaks over an answer here; tests/unit/roles/edge/test_interruption.py does",
    "fleet_early_work_skipped": "nobody pauses often here; tests/security/test_pauses.py does",
    "fleet_presences_replaced": "few presences wait here; see tests/integration/worker/test_presences.py",
    "fleet_turn_head_starts": "a busy worker has none; see tests/unit/roles/worker/turns/test_head_starts.py",
    "fleet_phantom_transcripts": "recognition is scripted; see tests/unit/adapters/speech/test_asr_filtered.py",
    **dict.fromkeys(
        (
            "fleet_events",
            "fleet_events_lost",
            "fleet_event_lag_seconds",
            "fleet_event_followers",
            "fleet_event_followers_dropped",
        ),
        "no control is part of this site; see tests/integration/control/test_events.py",
    ),
    **dict.fromkeys(
        ("fleet_job_executions", "fleet_jobs_active"),
        "no control is part of this site; tests/integration/sql/test_jobs.py counts them",
    ),
    **dict.fromkeys(
        ("fleet_alerts_open", "fleet_alerts_opened"),
        "no control is part of this site; tests/integration/control/test_alerts.py counts them",
    ),
    **dict.fromkeys(
        ("fleet_announcement_deliveries", "fleet_clips", "fleet_clip_requests"),
        "nobody announces anything here; see tests/integration/api/test_clips.py",
    ),
    **dict.fromkeys(
        ("fleet_reminder_requests", "fleet_reminders_ended"),
        "nobody wants to be reminded here; tests/unit/roles/worker/announcements/test_reminders.py counts them",
    ),
    "fleet_sign_ins": "no control is part of this site; tests/integration/control/test_sign_in.py counts them",
    **dict.fromkeys(
        ("fleet_state_rounds", "fleet_state_rounds_active", "fleet_devices_drifting"),
        "no control is part of this site; tests/integration/sql/test_desired_states.py counts them",
    ),
}
"""Metrics that may be 0 after such a load, and why."""
TIMES: Mapping[str, tuple[str, float, float]] = {
    "fleet_turn_e2e_latency_seconds": ("edge", 0.2, 30.0),
    "fleet_turn_end_of_turn_delay_seconds": ("edge", 0.1, 10.0),
    "fleet_turn_transcription_delay_seconds": ("edge", 0.0, 20.0),
    "fleet_turn_tts_ttfb_seconds": ("edge", 0.0, 20.0),
    "fleet_turn_llm_ttft_seconds": ("worker", 0.0, 60.0),
    "fleet_turn_llm_ttfs_seconds": ("worker", 0.0, 60.0),
    "fleet_tool_call_duration_seconds": ("worker", 0.0, 60.0),
    "fleet_hello_latency_seconds": ("worker", 0.0, 10.0),
    "fleet_udp_first_uplink_delay_seconds": ("edge", 0.0, 30.0),
    "fleet_udp_loss_ratio": ("edge", 0.001, 0.5),
    "fleet_downlink_frame_lateness_seconds": ("edge", 0.0, 1.0),
}
"""Where each histogram is, and between what its mean must be on a machine that is busy with other tests."""


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


async def test_a_load_shows_in_every_metric_and_in_whole_traces(tmp_path: Path, collector: OtlpReceiver) -> None:
    async with Steering(LOOPBACK, 0) as models:
        with load_site(tmp_path, models.url, collector) as site:
            await asyncio.to_thread(site.wait_ready)
            context = CheckContext(Setup(site.site.ota, models), find_profile("P1"))
            during, after = await hold_load(site, context)
            await asyncio.to_thread(until, lambda: whole(collector.spans), PATIENCE)
            deaf = await asyncio.to_thread(lose_the_broker, site)
    check_gauges(during, after)
    check_counters(after)
    for role, scraped in after.items():
        check_histograms(role, scraped)
    check_times(after)
    check_loss(after["edge"])
    check_catalogue(during, after, deaf)
    check_long_turn(collector)


async def hold_load(site: LoadSite, context: CheckContext) -> tuple[dict[str, Scraped], dict[str, Scraped]]:
    """Return what all roles show in the midst of a turn, and at the end."""
    leave, holding = asyncio.Event(), people.Holding(context)
    async with asyncio.TaskGroup() as staying:
        staying.create_task(holding.run())
        staying.create_task(people.use_the_gateway(site, context, leave))
        staying.create_task(people.pass_the_front(site, leave))
        async with asyncio.TaskGroup() as passing:
            for seed in range(TALKERS):
                passing.create_task(people.talk_through_bad_air(site, context, seed))
            passing.create_task(people.hear_apologies(context))
            passing.create_task(people.be_refused(context))
            passing.create_task(people.send_junk(site, context))
            passing.create_task(people.be_unheard(site, context))
            passing.create_task(people.visit_the_api(site))
            passing.create_task(people.have_the_password_renewed(site, context))
            await asyncio.wait_for(holding.called.wait(), PATIENCE)
        await asyncio.to_thread(site.until_shown, "worker", 1, "fleet_devices_online")
        await asyncio.to_thread(site.until_shown, "worker", 1, "fleet_pending_calls")
        await asyncio.to_thread(site.until_shown, "edge", 1, "fleet_sessions")
        during = await asyncio.to_thread(site.scrape_all)
        holding.let_go()
        leave.set()
    await asyncio.to_thread(site.until_shown, "edge", HEARD, "fleet_udp_loss_ratio_count")
    await asyncio.to_thread(site.until_shown, "worker", 0, "fleet_pending_calls")
    await asyncio.to_thread(site.until_shown, "worker", 0, "fleet_devices_online")
    await asyncio.to_thread(site.until_shown, "gateway", 0, "fleet_gateway_connections")
    return during, await asyncio.to_thread(site.scrape_all)


def lose_the_broker(site: LoadSite) -> dict[str, Scraped]:
    """Return what all roles show when the workers own their shards and hear no device."""
    site.site.broker.kill()
    site.until_shown("worker", 1, "fleet_shards_disconnected", 16)
    site.until_shown("worker", 0, "fleet_ready", part="broker")
    return site.scrape_all()


def check_gauges(during: Mapping[str, Scraped], after: Mapping[str, Scraped]) -> None:
    """In the midst there was one device with one session and one open call, one client, one device at the front."""
    for role, series, then, now in (
        ("worker", "fleet_devices_online", 1, 0),
        ("worker", "fleet_pending_calls", 1, 0),
        ("worker", "fleet_shards_owned", 16, 16),
        ("worker", "fleet_shards_disconnected", 0, 0),
        ("edge", "fleet_sessions", 1, 0),
        ("gateway", "fleet_gateway_connections", 1, 0),
    ):
        assert (during[role].value(series), after[role].value(series)) == (then, now), series
    assert during["front"].value("fleet_front_connections") == 1
    assert 0 <= after["worker"].value("fleet_mailbox_lag_seconds") < PATIENCE
    for role, scraped in after.items():
        parts = [value for name, _, value in scraped.samples if name == "fleet_ready"]
        assert parts and set(parts) == {1}, role


def check_counters(after: Mapping[str, Scraped]) -> None:
    for role, series, labels, count in (
        ("worker", "fleet_turns_total", {"outcome": "answered"}, ANSWERED + 1),
        ("worker", "fleet_turns_total", {"outcome": "failed"}, 1),
        ("worker", "fleet_tool_calls_total", {"place": "device", "outcome": "ok"}, TALKERS * people.TURNS + 2),
        ("worker", "fleet_tool_calls_total", {"place": "server", "outcome": "ok"}, 1),
        ("worker", "fleet_worker_refusals_total", {"reason": "hello_refused"}, 1),
        ("edge", "fleet_utterances_total", {"outcome": "understood"}, ANSWERED + 1),
        ("edge", "fleet_utterances_total", {"outcome": "failed"}, 1),
        ("edge", "fleet_turns_given_up_total", {}, 1),
        ("edge", "fleet_edge_drops_total", {"reason": "too_short"}, 1),
        ("edge", "fleet_edge_drops_total", {"reason": "unknown_ssrc"}, people.STRAYS),
        ("gateway", "fleet_tool_calls_total", {"place": "client", "outcome": "ok"}, 1),
        ("gateway", "fleet_gateway_turns_total", {"outcome": "answered"}, 1),
        ("gateway", "fleet_gateway_turns_total", {"outcome": "llm_error"}, 1),
        ("gateway", "fleet_gateway_refusals_total", {"code": "invalid_message"}, 1),
        ("gateway", "fleet_gateway_turned_away_total", {"reason": "origin"}, 1),
        ("api", "fleet_api_requests_refused_total", {"route": "elsewhere", "status": "404"}, 1),
        ("api", "fleet_api_requests_refused_total", {"route": "/devices/{mac}/input", "status": "401"}, 1),
        ("api", "fleet_api_refusals_total", {"reason": "operator_token"}, 1),
        ("front", "fleet_front_events_total", {"reason": "not_authorised"}, 1),
    ):
        assert after[role].value(series, **labels) == count, (series, labels)
    for role, series, labels, least in (
        ("worker", "fleet_provider_errors_total", {"provider": "llm", "kind": "server"}, 1),
        ("edge", "fleet_provider_errors_total", {"provider": "asr", "kind": "server"}, 1),
        ("gateway", "fleet_provider_errors_total", {"provider": "llm", "kind": "server"}, 1),
        ("worker", "fleet_malformed_frames_total", {"source": "device"}, 1),
        ("edge", "fleet_edge_drops_total", {"reason": "lost"}, people.LOST),
        ("edge", "fleet_edge_drops_total", {"reason": "replay"}, 1),
        ("edge", "fleet_udp_packets_received_total", {}, people.SENT + people.STRAYS),
    ):
        assert after[role].value(series, **labels) >= least, (series, labels)


def check_histograms(role: str, scraped: Scraped) -> None:
    """Buckets never fall, the last one has all, and the sum fits them."""
    for metric in all_metrics():
        if not isinstance(metric, HistogramMetric):
            continue
        buckets = scraped.buckets(metric.name)
        counts = [count for _, count in buckets]
        assert counts == sorted(counts), (role, metric.name)
        if not counts or not counts[-1]:
            continue
        assert [bound for bound, _ in buckets] == [*metric.bounds, math.inf]
        assert counts[-1] == scraped.value(f"{metric.name}_count"), (role, metric.name)
        bounds = [0.0, *(bound for bound, _ in buckets)]
        single = [count - before for count, before in zip(counts, [0.0, *counts], strict=False)]
        least = sum(low * count for low, count in zip(bounds, single, strict=False))
        most = sum(high * count for high, count in zip(bounds[1:], single, strict=True) if count)
        assert least - 1e-6 <= scraped.value(f"{metric.name}_sum") <= most + 1e-6, (role, metric.name)


def check_times(after: Mapping[str, Scraped]) -> None:
    worker, edge = after["worker"], after["edge"]
    for name, (role, least, most) in TIMES.items():
        assert least <= after[role].mean(name) <= most, (name, after[role].mean(name))
    # No control is part of this site.
    histograms = {metric.name for metric in all_metrics() if metric.kind == "histogram"}
    assert histograms == {*TIMES, "fleet_event_lag_seconds"}
    assert worker.value("fleet_hello_latency_seconds_count") == SESSIONS + 1
    assert edge.value("fleet_udp_first_uplink_delay_seconds_count") == HEARD
    assert edge.value("fleet_turn_transcription_delay_seconds_count") == ANSWERED + 1
    assert edge.value("fleet_turn_end_of_turn_delay_seconds_count") == ANSWERED + 2
    assert edge.value("fleet_turn_e2e_latency_seconds_count") == ANSWERED + 1, (
        "the worker's apology is heard as an answer is"
    )
    for name in ("fleet_turn_llm_ttft_seconds", "fleet_turn_llm_ttfs_seconds"):
        assert worker.value(f"{name}_count") == ANSWERED + 1
    for place, role in (("device", "worker"), ("server", "worker"), ("client", "gateway")):
        durations = after[role].value("fleet_tool_call_duration_seconds_count", place=place)
        assert durations == after[role].value("fleet_tool_calls_total", place=place) > 0


def check_loss(edge: Scraped) -> None:
    """The device with the gap lost 5 of 25 packets, the one that held on none, bad air a few."""
    buckets = dict(edge.buckets("fleet_udp_loss_ratio"))
    assert buckets[0.0] >= 1
    assert buckets[0.2] - buckets[0.1] >= 1
    assert buckets[0.5] == HEARD


def check_catalogue(during: Mapping[str, Scraped], after: Mapping[str, Scraped], deaf: Mapping[str, Scraped]) -> None:
    """Every metric has a value at one of the times unless `ZERO` says why not, and only where its definition says."""
    seen: dict[str, set[str]] = {metric.name: set() for metric in all_metrics()}
    for metric in all_metrics():
        for role in after:
            if any(value_of(scraped[role], metric) for scraped in (during, after, deaf)):
                seen[metric.name].add(role)
        assert seen[metric.name] <= set(metric.roles), metric.name
    assert {name for name, roles in seen.items() if not roles} <= set(ZERO)
    for role, scraped in after.items():
        assert not any(math.isnan(value) for _, _, value in scraped.samples), role
        assert not any(value == OTHER for _, _, value in scraped.labels()), role


def value_of(scraped: Scraped, metric: Metric) -> float:
    return scraped.value(f"{metric.name}_count" if metric.kind == "histogram" else metric.series)


def whole(spans: list[ReceivedSpan]) -> bool:
    """Whether as many turns as there were have come, and of each span the one above it."""
    found = list(spans)
    ids = {(span.trace, span.id) for span in found}
    turns = [span for span in found if span.name == "turn" and span.role == "fleet-edge"]
    return len(turns) >= ANSWERED + 2 and all(not span.parent or (span.trace, span.parent) in ids for span in found)


def check_long_turn(collector: OtlpReceiver) -> None:
    """The turn with three calls is one trace: of an edge and a worker, with every step below the one it belongs to."""
    [trace] = {span.trace for span in collector.spans if span.attributes.get("gen_ai.tool.name") == "self.hold.on"}
    spans = collector.trace(trace)
    by_id = {span.id: span for span in spans}
    kinds: dict[str, list[ReceivedSpan]] = {}
    for span in spans:
        kinds.setdefault(span.name.partition(" ")[0], []).append(span)
        above = by_id.get(span.parent)
        assert above is None or above.begin <= span.begin
        assert span.begin <= span.end
    parents = {kind: {by_id[span.parent].name for span in found if span.parent} for kind, found in kinds.items()}
    assert parents == {
        "turn": set(),
        "transcribe": {"turn"},
        "answer": {"turn"},
        "speak": {"turn"},
        "chat": {"answer"},
        "execute_tool": {"answer"},
    }
    assert [len(kinds[name]) for name in ("turn", "transcribe", "answer", "chat", "execute_tool")] == [1, 1, 1, 2, 3]
    assert {span.role for name in ("turn", "transcribe", "speak") for span in kinds[name]} == {"fleet-edge"}
    assert {span.role for name in ("answer", "chat", "execute_tool") for span in kinds[name]} == {"fleet-worker"}
    calls = kinds["execute_tool"]
    names = {span.attributes["gen_ai.tool.name"] for span in calls}
    assert names == {"self.hold.on", "self.hold.briefly", "get_current_time"}
    assert len({span.attributes["gen_ai.tool.call.id"] for span in calls}) == len(calls)
    assert {span.attributes["fleet.outcome"] for span in calls} == {"ok"}
