"""The roles that jobs need as processes of their own, with a crowd of devices and some that talk."""

import asyncio
import resource
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Final

from fleet.adapters.sql.open import open_database
from fleet.adapters.sql.token_rows import TokenRows
from fleet.client import jobs
from fleet.client.call import Answer, Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.permissions import SCOPES
from fleet.ground.errors import Unavailable
from fleet.roles.control.access import digest_of_token
from fleet.wire.control.jobs import JobRequest
from fleet.workbench.bench.crowd import CrowdProcesses, crowd
from fleet.workbench.bench.testbed import Testbed, testbed
from fleet.workbench.bench.usage import CpuMeter
from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.process import run_program
from fleet.workbench.local_servers.server import Value, fleet_command
from fleet.workbench.sim.crowd.crowd import CrowdPlan
from fleet.workbench.sim.crowd.run import SPARE_FILES, slices

QUERY: Final = 'mac:"02:c0:*"'
"""The crowd's devices: those that talk have no part in jobs."""
_REGISTERED_SECONDS: Final = 300.0
_DEVICES_A_SECOND: Final = 100
"""How fast control must learn devices at least."""


@dataclass(frozen=True, slots=True)
class JobSite:
    """What runs."""

    testbed: Testbed
    """Broker, Redis, workers, and the devices that talk."""
    crowd: CrowdProcesses
    client: AsyncFleetClient
    meter: CpuMeter

    async def until_registered(self, devices: int, online: int) -> None:
        """Wait until control knows all devices of the crowd, and which are connected.

        Raises:
            Unavailable: It does not in time.
        """
        asked = JobRequest.model_validate({"name": "x", "query": QUERY, "kind": "reboot"})
        clock = asyncio.get_running_loop().time
        until = clock() + _REGISTERED_SECONDS + devices / _DEVICES_A_SECOND
        while (seen := await look(self.client, jobs.preview(asked))) is None or (
            seen.online < online or seen.devices < devices
        ):
            if clock() > until:
                known = f"knows {seen.devices} devices, {seen.online} of them online" if seen else "does not answer"
                raise Unavailable(f"control {known}")
            await asyncio.sleep(1.0)

    def open_files(self) -> list[int]:
        """Return how many files each broker has open: little more than connections."""
        return [sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()) for pid in self.testbed.place.brokers]


async def look(client: AsyncFleetClient, call: Call[Answer]) -> Answer | None:
    """Return the answer to a question that is asked again and again; None when control cannot answer at the moment."""
    try:
        return await client.send(call)
    except ClientError as error:
        if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return None


def count_outer(plan: CrowdPlan, wanted: int | None) -> int:
    """Return how many brokers of their own the devices need, if not so many are wanted; 0: that of the workers does.

    A process of the crowd may have as many files open as a broker: each gets one.
    """
    if wanted is not None:
        return wanted
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return len(slices(plan, files)) if plan.count * (1 - plan.shares.offline) > files - SPARE_FILES else 0


@asynccontextmanager
async def job_site(plan: CrowdPlan, workers: int, outer: int = 0, voice: str = "") -> AsyncIterator[JobSite]:
    """Run everything beside the block; the crowd, whose URL the plan need not have, is still switched off.

    Args:
        plan: Of the crowd.
        workers: How many processes.
        outer: How many brokers the devices have of their own.
        voice: Base URL of speech for a real edge, which then makes clips; the api counts too.
    """
    http, port, token = choose(), choose(), secrets.token_hex(16)
    settings: dict[str, Value] = {
        "http_host": LOOPBACK,
        "http_port": http,
        "control_port": port,
        "activation": "open",
        "rate_address": "500/5000",
        "rate_control": "100000/100000",
        "history_messages": 0,
        "lease_seconds": 30,
        **({"tts_base_url": voice, "http_public": f"http://{LOOPBACK}:{http}"} if voice else {}),
    }
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        site = await enter(testbed(workers=workers, settings=settings, edge=bool(voice), outer=outer))
        folder = site.place.folder
        async with open_database(f"sqlite:///{folder / 'control.db'}") as database:
            await TokenRows(database).add(1, "bench", digest_of_token(token), SCOPES, 1)
        roles = {}
        for role, answers_at in (("control", port), ("api", http)):
            command = fleet_command(site.place.config, role)
            roles[role] = (await enter(run_program(f"the {role}", command, folder / f"{role}.log"))).pid
            await until_accepting(f"the {role}", answers_at, _REGISTERED_SECONDS)
        url = f"http://{LOOPBACK}:{http}/xiaozhi/ota/"
        brokers = [one.address for one in site.place.outer] or [""]
        devices = await enter(crowd(replace(plan, ota_url=url), folder, brokers))
        client = await enter(AsyncFleetClient(f"http://{LOOPBACK}:{port}", token))
        parts = {
            "control": [roles["control"]],
            "redis": [site.place.redis],
            "worker": [one.pid for one in site.workers],
            "broker": site.place.brokers,
            "crowd": devices.pids,
            **({"api": [roles["api"]]} if voice else {}),
        }
        yield JobSite(site, devices, client, CpuMeter(parts))
