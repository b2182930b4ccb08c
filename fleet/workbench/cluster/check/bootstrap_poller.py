"""Sends bootstrap requests all the time: checks that the api answers each of them while it is replaced."""

import asyncio
from collections.abc import Callable

import httpx2

from fleet.workbench.cluster.check.history import History
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.bootstrap.request import ask
from fleet.workbench.sim.profiles.profile import find_profile

_MAC = "02:c1:05:7e:00:00"
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 10.0


async def poll_bootstrap(ota_url: str, history: History, over: Callable[[], bool]) -> None:
    """Send bootstrap requests, each on a new connection, until the restarts are over; record those without answer."""
    profile = find_profile("P1")
    while not over():
        history.api_requests += 1
        try:
            async with httpx2.AsyncClient(timeout=_ANSWER_SECONDS, trust_env=False) as client:
                if "mqtt" not in await ask(ota_url, _MAC, profile, client):
                    history.add_fault("api", "a bootstrap without MQTT")
        except (Failed, httpx2.HTTPError) as error:
            history.add_fault("api", f"bootstrap {history.api_requests}: {error or type(error).__name__}")
        await asyncio.sleep(_PAUSE_SECONDS)
