"""What tells outside how a process is doing, from the settings: its port for metrics and health, its traces."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fleet.errors import ConfigError
from fleet.link.metrics_server import MetricsServer
from fleet.link.readiness import Readiness
from fleet.settings import Settings
from fleet.tasks import running
from fleet.tracing import spans

log = logging.getLogger(__name__)


@asynccontextmanager
async def watching(settings: Settings, role: str) -> AsyncIterator[Readiness]:
    """Serve the process's metrics and health beside the block, and send its traces; give what its readiness is told.

    Args:
        settings: Of the process.
        role: Its name in traces.

    Raises:
        ConfigError: The port that was asked for is taken, or traces are wanted and their packages are missing.
    """
    readiness = Readiness()
    async with AsyncExitStack() as stack:
        if settings.otlp_endpoint is not None:
            stack.callback(spans.switch_off)
            spans.switch_on(_tracer(settings.otlp_endpoint, role), pii=settings.log_pii)
        server = _server(settings, readiness)
        if server is not None:
            log.debug("metrics are served", extra={"port": server.port})
            await stack.enter_async_context(running("metrics", server.run))
        yield readiness


def _server(settings: Settings, readiness: Readiness) -> MetricsServer | None:
    if not settings.metrics_port:
        return None
    try:
        return MetricsServer(settings.metrics_host, settings.metrics_port, readiness)
    except ConfigError as error:
        if "metrics_port" in settings.model_fields_set:
            raise
        # Several roles on one machine by hand: nobody asked for this port.
        log.warning("no metrics", extra={"reason": str(error)})
        return None


def _tracer(endpoint: str, role: str) -> spans.Tracer:
    try:
        from fleet.tracing.tracer_otlp import OtlpTracer
    except ModuleNotFoundError as missing:
        raise ConfigError(f"traces need the package {missing.name}: pip install 'fleet[otel]'") from missing
    return OtlpTracer(endpoint, role)
