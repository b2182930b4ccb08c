"""A site with real roles inside the test's own event loop, and the doctor who looks at it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from fleet.adapters.speech.load import load_asr, load_tts, load_turn_detector
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.core.finding import Finding, exit_code
from fleet.ground.settings import load
from fleet.operations.doctor.examination import examine
from fleet.operations.doctor.site import open_site
from fleet.roles.edge.app import Edge
from fleet.run.api import api
from fleet.run.edge import edge
from fleet.run.resources import open_resources
from fleet.run.speech import SpeechEngines
from fleet.run.worker import worker
from tests.support.ports import LOOPBACK

LIMIT = 480


class Findings:
    """What the doctor found."""

    def __init__(self, found: list[Finding]) -> None:
        self.all = found
        self.exit = exit_code(found)
        self.bad = {one.check: one for one in found if one.verdict in ("problem", "wrong")}

    def __getitem__(self, check: str) -> Finding:
        return next(one for one in self.all if one.check == check)

    def __str__(self) -> str:
        return "\n".join(f"{one.verdict:8} {one.check:20} {one.message} | {one.advice}" for one in self.all)


async def run_doctor(
    settings: dict[str, Any], *parts: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Findings:
    """Return what the doctor finds with these settings, of some parts or of all."""
    async with asyncio.timeout(LIMIT), open_site(load(**settings), now) as case:
        return Findings(await examine(case, frozenset(parts)))


@asynccontextmanager
async def running_roles(
    settings: dict[str, Any], vad: SileroVad, *, udp: tuple[str, int] | None = None
) -> AsyncIterator[Edge]:
    """Run a worker, an api and an edge; give the edge.

    Args:
        settings: Of all of them.
        vad: Of the edge.
        udp: Where the edge tells devices that it is; its own address without it.
    """
    loaded = load(**settings, drain_seconds=0.0)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(open_resources(loaded))
        speech = SpeechEngines(vad, load_asr(loaded), load_tts(loaded), load_turn_detector(loaded))
        place = udp or (LOOPBACK, loaded.udp_port)
        role = await stack.enter_async_context(edge(here, speech, public=place))
        await stack.enter_async_context(worker(here))
        await stack.enter_async_context(api(here))
        yield role
