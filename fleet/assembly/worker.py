"""A worker, from the settings."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.assembly.leaving import limited, new_name
from fleet.assembly.site import Site
from fleet.errors import ConfigError
from fleet.llm.llm_openai import OpenAiLlm
from fleet.tasks import running
from fleet.worker.app import Worker
from fleet.worker.resources import Resources

log = logging.getLogger(__name__)

READY_SECONDS = 20.0


@asynccontextmanager
async def worker(here: Site) -> AsyncIterator[None]:
    """Run a worker beside the block; the block begins when it hears its devices."""
    settings = here.settings
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    if settings.llm_base_url is None:
        raise ConfigError("LLM_BASE_URL is missing; only `fleet up` brings a demo model")
    llm = OpenAiLlm(
        settings.llm_base_url,
        key,
        settings.llm_model,
        settings.llm_timeout,
        temperature=settings.llm_temperature,
        max_tokens=settings.llm_max_tokens,
    )
    if here.broker is None:
        raise ConfigError("a worker needs FLEET_MQTT_URL")
    role = Worker(Resources.of(settings, here.keys, llm, here.store), new_name(), here.broker)
    try:
        async with running("worker", role.run):
            try:
                await _until_ready("the broker", role)
                yield
            finally:
                async with limited("worker", settings.drain_seconds):
                    await role.drain(settings.drain_seconds)
    finally:
        await llm.aclose()


async def _until_ready(what: str, role: Worker) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not role.ready:  # noqa: ASYNC110 - readiness is a state of many parts, not one event
                await asyncio.sleep(0.02)
    except TimeoutError:
        log.warning("not ready yet, going on", extra={"waiting": what})
