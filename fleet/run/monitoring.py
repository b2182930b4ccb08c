"""Starts metrics, health checks and traces of a process from the settings."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from fleet.adapters.net.descriptors import raise_limit, watch_descriptors
from fleet.adapters.net.http.readiness import Readiness
from fleet.ground.errors import ConfigError, install_hint
from fleet.ground.metrics import bounds
from fleet.ground.settings import Settings
from fleet.ground.tasks import running
from fleet.ground.tracing import spans

if TYPE_CHECKING:
    from fleet.adapters.net.http.metrics_server import MetricsServer

log = logging.getLogger(__name__)


@asynccontextmanager
async def run_monitoring(settings: Settings, role: str) -> AsyncIterator[Readiness]:
    """Serve metrics and health checks of the process during the block, and send its traces; give its readiness.

    Args:
        settings: Of the process.
        role: The process's name in traces.

    Raises:
        ConfigError: FLEET_METRICS_PORT is set and taken, or the packages for traces are missing.
    """
    readiness = Readiness()
    raise_limit()
    async with AsyncExitStack() as stack:
        stack.enter_context(readiness.shown())
        stack.enter_context(bounds.following_log_sampling())
        if settings.otlp_endpoint is not None:
            spans.enable(_tracer(settings.otlp_endpoint, role), pii=settings.log_pii)
            # In a thread: to send the remaining spans takes as long as the collector needs.
            stack.push_async_callback(asyncio.to_thread, spans.disable)
        server = _server(settings, readiness)
        if server is not None:
            log.debug("serving metrics", extra={"port": server.port})
            await stack.enter_async_context(running("metrics", server.run))
        await stack.enter_async_context(running("file descriptors", watch_descriptors))
        yield readiness


def _server(settings: Settings, readiness: Readiness) -> "MetricsServer | None":
    if not settings.metrics_port:
        return None
    # Imported late: most commands do not serve metrics.
    from fleet.adapters.net.http.metrics_server import MetricsServer

    try:
        return MetricsServer(settings.metrics_host, settings.metrics_port, readiness)
    except ConfigError as error:
        if "metrics_port" in settings.model_fields_set:
            raise
        # The operator did not set this port: another role on this machine uses it.
        log.warning("cannot serve metrics", extra={"reason": str(error)})
        return None


def _tracer(endpoint: str, role: str) -> spans.Tracer:
    try:
        from fleet.ground.tracing.tracer_otlp import OtlpTracer
    except ModuleNotFoundError as missing:
        raise ConfigError(f"traces need the package {missing.name}: {install_hint('server')}") from missing
    return OtlpTracer(endpoint, role)
