"""Builds a worker from the settings."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fleet.adapters.redis.access.admissions import most_young
from fleet.adapters.tools.load import ServerToolSettings, open_tools
from fleet.core.server_tools import ServerTools
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import bounds
from fleet.ground.metrics import broker as metrics
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.worker.app import Worker
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.settings import WorkerSettings
from fleet.run.draining import drain_limit, new_process_id
from fleet.run.llm import open_models
from fleet.run.resources import ProcessResources
from fleet.run.start_check import chat_models, checking_models

log = logging.getLogger(__name__)

READY_SECONDS = 20.0
"""Longest wait until the worker is ready; afterwards the process goes on."""


@asynccontextmanager
async def worker(resources: ProcessResources, shared: ServerTools | None = None) -> AsyncIterator[Worker]:
    """Run a worker during the block and give it; the block begins when the worker receives from its devices.

    Args:
        resources: Of the process.
        shared: Server tools that another role of this process has opened; if None, the worker opens its own.

    Raises:
        ConfigError: FLEET_MQTT_URL is missing, or the settings of the chat model or of the tools are wrong.
    """
    settings = resources.settings
    if resources.broker is None:
        raise ConfigError("a worker needs FLEET_MQTT_URL")
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(open_models(settings))
        tools = None
        if settings.device_server_tools:
            tools = shared or await stack.enter_async_context(open_tools(slice_of(settings, ServerToolSettings)))
        role = Worker(
            WorkerResources.of(slice_of(settings, WorkerSettings), resources.keys, models, resources.store, tools),
            new_process_id(),
            resources.broker,
        )
        stack.enter_context(metrics.refusals.following(role.counts))
        stack.enter_context(bounds.following("tool_lists_bytes", lambda: role.lists.used, role.lists.limit))
        stack.enter_context(bounds.following("new_devices", lambda: role.new_devices, most_young(settings.shards)))
        stack.enter_context(role.gauges.shown())
        stack.enter_context(resources.readiness.requiring("broker", lambda: role.connected))
        stack.enter_context(resources.readiness.requiring("leases", lambda: role.settled))
        await stack.enter_async_context(checking_models(*chat_models(settings)))
        async with running("worker", role.run):
            try:
                await _until_ready(role)
                yield role
            finally:
                async with drain_limit("worker", settings.drain_seconds):
                    await role.drain(settings.drain_seconds)


async def _until_ready(role: Worker) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not role.ready:  # noqa: ASYNC110 - readiness depends on several parts, there is no single event
                await asyncio.sleep(0.02)
    except TimeoutError:
        log.warning("worker is not ready yet", extra={"seconds": READY_SECONDS})
