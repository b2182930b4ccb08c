"""What roles tell of themselves after a conversation: every metric has a plausible value, one trace the whole turn."""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.ground.metrics.catalogue import all_metrics
from fleet.ground.metrics.definition import OTHER
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import calls
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.role_site import RoleSite, role_site
from tests.support.scraped import Scraped, ready, scrape
from tests.support.until import until
from tests.support.waking import broken_rules, wake_up

ROLES = ("worker", "edge", "api", "gateway", "front")
TOOL = "self.get_device_status"
LIMIT = 240.0
"""Seconds that anything may take on a busy machine; a figure in milliseconds would be above it."""
SECRET = "the cat sleeps on the roof"


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.mark.scripted
async def test_a_conversation_is_measured_and_traced(tmp_path: Path, collector: OtlpReceiver) -> None:
    async with Steering(LOOPBACK, 0) as models:
        with role_site(tmp_path, models.url) as site:
            ports = start(site, collector)
            await asyncio.to_thread(until, lambda: all(ready(port) for port in ports.values()))
            await converse(site, models)
            loss = "fleet_udp_loss_ratio_count"
            await asyncio.to_thread(until, lambda: scrape(ports["edge"]).value(loss) == 1)
            # A gauge of what Redis has is read from time to time.
            await asyncio.to_thread(until, lambda: scrape(ports["worker"]).value("fleet_pending_calls") == 0)
            found = {role: await asyncio.to_thread(scrape, port) for role, port in ports.items()}
            await asyncio.to_thread(until, lambda: {"turn", "answer"} <= {span.name for span in collector.spans})
    check_values(found)
    check_labels(found)
    check_trace(collector)


def start(site: RoleSite, collector: OtlpReceiver) -> dict[str, int]:
    """Start a process of each role; return their ports."""
    ports = {role: free_port() for role in ROLES}
    told = {
        role: {
            "FLEET_METRICS_PORT": str(port),
            "FLEET_METRICS_HOST": LOOPBACK,
            "FLEET_OTLP_ENDPOINT": collector.url,
            "FLEET_LANGUAGE": "en",
        }
        for role, port in ports.items()
    }
    site.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(site.http_port), **told["api"])
    site.worker(**told["worker"])
    site.edge(**told["edge"])
    site.start("gateway", CLOUD_HOST=LOOPBACK, CLOUD_PORT=str(free_port()), **told["gateway"])
    site.start("front", FLEET_MQTT_HOST=LOOPBACK, FLEET_MQTT_PORT=str(free_port()), **told["front"])
    return ports


async def converse(site: RoleSite, models: Steering) -> None:
    """Let a device ask for what needs a tool, and say goodbye."""
    await asyncio.to_thread(until, lambda: site.edges() == 1 and accepts(site.http_port))
    device = SimDevice(find_profile("P1"), ota_url=site.ota, mac="02:00:00:00:00:77")
    async with device.running(LIMIT):
        await wake_up(device)
        [worker] = [role for role in site.roles if role.role == "worker"]
        await asyncio.to_thread(until, lambda: worker.count("tools discovered") > 0)
        mark = models.free_mark()
        scene = calls(mark, TOOL.removeprefix("self."), {}, f"all is well, {SECRET}", transcript="how are you")
        models.add(replace(scene, reply_seconds=1.5))
        turn = await device.say(voice.say(mark, 1.2), LIMIT)
        assert turn.outcome == "answered"
        assert await device.hang_up(240)
    assert broken_rules(device) == []


def check_values(found: dict[str, Scraped]) -> None:
    worker, edge = found["worker"], found["edge"]
    for name, role, least, most in (
        ("fleet_turn_e2e_latency_seconds", edge, 0.2, LIMIT),
        ("fleet_turn_end_of_turn_delay_seconds", edge, 0.1, LIMIT),
        ("fleet_turn_transcription_delay_seconds", edge, 0.0, LIMIT),
        ("fleet_turn_tts_ttfb_seconds", edge, 0.0, LIMIT),
        ("fleet_turn_llm_ttft_seconds", worker, 0.0, LIMIT),
        ("fleet_turn_llm_ttfs_seconds", worker, 0.0, LIMIT),
        ("fleet_tool_call_duration_seconds", worker, 0.0, LIMIT),
        ("fleet_hello_latency_seconds", worker, 0.0, LIMIT),
        ("fleet_udp_first_uplink_delay_seconds", edge, 0.0, LIMIT),
        ("fleet_downlink_frame_lateness_seconds", edge, 0.0, LIMIT),
        ("fleet_udp_loss_ratio", edge, 0.0, 0.5),
    ):
        assert least <= role.mean(name) <= most, name
    assert edge.value("fleet_turn_e2e_latency_seconds_count") == 1
    assert worker.value("fleet_turns_total", outcome="answered") == 1
    assert worker.value("fleet_tool_calls_total", place="device", outcome="ok") == 1
    assert edge.value("fleet_utterances_total", outcome="understood") == 1
    assert edge.value("fleet_udp_packets_received_total") > 20
    assert worker.value("fleet_shards_owned") == 16
    assert worker.value("fleet_shards_disconnected") == 0
    assert worker.value("fleet_pending_calls") == 0
    assert worker.value("fleet_mailbox_lag_seconds") == 0
    assert worker.value("fleet_devices_online") in (0, 1)
    assert found["gateway"].value("fleet_gateway_connections") == 0
    assert found["front"].value("fleet_front_connections") == 0
    for role, scraped in found.items():
        assert scraped.value("fleet_ready", part="redis") == 1, role
        assert not any(math.isnan(scraped.value(name)) for name in scraped.names()), role


def check_labels(found: dict[str, Scraped]) -> None:
    known = {
        (series, label, value)
        for metric in all_metrics()
        for series in (metric.series, *(f"{metric.name}_{part}" for part in ("bucket", "sum", "count")))
        for label, values in metric.labels.items()
        for value in values
    }
    for role, scraped in found.items():
        assert scraped.labels() <= known, role
        assert not any(value == OTHER for _, _, value in scraped.labels()), role


def check_trace(collector: OtlpReceiver) -> None:
    [root] = [span for span in collector.spans if span.name == "turn"]
    trace = collector.trace(root.trace)
    ahead = {span.trace for span in collector.spans if span.name == "head start"}
    assert {span.trace for span in collector.spans} == {root.trace} | ahead
    named = {span.name.partition(" ")[0]: span for span in trace}
    assert named.keys() == {"turn", "transcribe", "answer", "chat", "execute_tool", "speak"}
    assert (root.role, root.parent) == ("fleet-edge", "")
    assert "first packet sent" in root.events
    by_id = {span.id: span for span in trace}
    assert {by_id[span.parent].name for span in trace if span.name.startswith(("chat", "execute_tool"))} == {"answer"}
    assert {by_id[named[name].parent].name for name in ("transcribe", "answer", "speak")} == {"turn"}
    assert all(by_id[span.parent].begin <= span.begin for span in trace if span.parent)
    chat, tool = named["chat"], named["execute_tool"]
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.request.model"]
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.attributes["gen_ai.tool.name"] == TOOL
    assert {span.role for span in trace} == {"fleet-edge", "fleet-worker"}
    assert sum(span.name.startswith("chat") for span in trace) == 2
    assert not any(_tells(span, SECRET) for span in trace)


def _tells(span: ReceivedSpan, text: str) -> bool:
    return text in span.name or any(text in str(value) for value in span.attributes.values())
