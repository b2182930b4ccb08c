import asyncio
import socket

import pytest

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.tracing import spans
from fleet.run.monitoring import run_monitoring
from tests.support.patience import METRICS, lengthen
from tests.support.ports import LOOPBACK, free_port
from tests.support.scraped import ask


async def test_the_port_is_there_before_the_role_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lengthen(monkeypatch, METRICS)
    port = free_port()
    async with run_monitoring(Settings(metrics_host=LOOPBACK, metrics_port=port), "worker") as readiness:
        status, _, body = await asyncio.to_thread(ask, port, "/readyz")
        assert (status, b"starting" in body) == (503, True)
        with readiness.serving():
            assert (await asyncio.to_thread(ask, port, "/readyz"))[0] == 200
    with pytest.raises(OSError):
        await asyncio.to_thread(ask, port, "/healthz")


async def test_zero_is_no_port() -> None:
    async with run_monitoring(Settings(metrics_port=0), "worker") as readiness:
        assert await readiness.look() == "starting"


async def test_a_port_that_was_asked_for_must_be_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        settings = Settings(metrics_host=LOOPBACK, metrics_port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match="FLEET_METRICS_PORT"):
            async with run_monitoring(settings, "worker"):
                pass


async def test_a_second_role_on_the_machine_runs_without_the_port_that_nobody_asked_for() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        settings = Settings(metrics_host=LOOPBACK)
        settings.__dict__["metrics_port"] = taken.getsockname()[1]
        assert "metrics_port" not in settings.model_fields_set
        async with run_monitoring(settings, "worker") as readiness, asyncio.timeout(240):
            assert await readiness.look() == "starting"


async def test_traces_are_on_only_with_a_collector_and_only_meanwhile() -> None:
    pytest.importorskip("opentelemetry.sdk")
    port = free_port()
    settings = Settings(metrics_port=0, otlp_endpoint=f"http://{LOOPBACK}:{port}")
    async with run_monitoring(settings, "worker"):
        with spans.span("work") as span:
            assert span is not spans.OFF
            assert span.traceparent.startswith("00-")
    with spans.span("work") as span:
        assert span is spans.OFF
