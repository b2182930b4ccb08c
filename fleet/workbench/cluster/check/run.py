"""One check: users talk to a cluster all the time, while every process of every role is replaced."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.workbench.cluster.check.client import Client
from fleet.workbench.cluster.check.history import History
from fleet.workbench.cluster.check.judge import Verdict, judge
from fleet.workbench.cluster.check.owner import Owner
from fleet.workbench.cluster.check.visitor import visit
from fleet.workbench.cluster.cluster import Cluster, Restart, run_cluster
from fleet.workbench.cluster.plan import ROLES, Plan, Role, counts
from fleet.workbench.conformance.own_server import steered
from fleet.workbench.conformance.steering.voice import MARKS
from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.process import run_program
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile

_BOOT_SECONDS = 60.0
_DISCOVERY_SECONDS = 10.0
_PROFILE = replace(find_profile("P1"), extra_tools=1)


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of a check; `pause` is the time of talk before, between and after the restarts, in seconds."""

    data: Path
    conversations: int = 50
    clients: int = 4
    workers: int = 2
    edges: int = 2
    pause: float = 3.0
    seed: int = 1
    roles: Sequence[Role] = ROLES


async def check(options: Options, report: Callable[[str], None] = lambda _: None) -> Verdict:
    """Run a check.

    Args:
        options: What it is to be like.
        report: Called with what is being done.

    Raises:
        ConfigError: A program is missing, or the plugin cannot be built.
        Unavailable: The cluster did not get ready.
    """
    history = History()
    for folder in (options.data, options.data / "devices"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(_models(options.data))
        plan = Plan(
            data=options.data / "cluster",
            counts=counts(options.workers, options.edges),
            settings={**steered(models), "llm_model": "scripted", "log_level": "debug", "log_pii": True},
            usual_ports=False,
        )
        cluster = await stack.enter_async_context(run_cluster(plan, report))
        report(f"{options.conversations} devices boot")
        owners = await stack.enter_async_context(_owners(cluster, history, options))
        await _restart_all(cluster, owners, history, options, report)
        await _leave(owners, options.data / "devices")
        for death in cluster.deaths:
            history.blame("process died", death)
    return judge(history)


@asynccontextmanager
async def _owners(cluster: Cluster, history: History, options: Options) -> AsyncIterator[list[Owner]]:
    """Run devices, each with a user; usually the server knows their tools already."""
    devices = [
        SimDevice(_PROFILE, ota_url=cluster.ota_url, mac=f"02:c1:05:00:{at >> 8:02x}:{at & 255:02x}", seed=at)
        for at in range(options.conversations)
    ]
    booted, over = [asyncio.Event() for _ in devices], asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for device, up in zip(devices, booted, strict=True):
            group.create_task(_power(device, up, over), name=f"device {device.mac}")
        for up in booted:
            await up.wait()
        chance, marks = random.Random(options.seed), _share(options.conversations + options.clients)
        owners = [Owner(one, marks[at], history, random.Random(chance.random())) for at, one in enumerate(devices)]
        async with asyncio.TaskGroup() as meeting:
            for owner in owners:
                # A device that was not asked yet is asked at its first hello.
                meeting.create_task(owner.meet(_DISCOVERY_SECONDS), name=f"tools of {owner.name}")
        yield owners
        over.set()


async def _leave(owners: list[Owner], folder: Path) -> None:
    async with asyncio.TaskGroup() as group:
        for owner in owners:
            group.create_task(owner.leave(folder), name=f"end of {owner.name}")


async def _power(device: SimDevice, up: asyncio.Event, over: asyncio.Event) -> None:
    async with device.running(_BOOT_SECONDS):
        up.set()
        await over.wait()


async def _restart_all(
    cluster: Cluster, owners: list[Owner], history: History, options: Options, report: Callable[[str], None]
) -> None:
    """Let all users talk while the processes are replaced."""
    done = False

    def over() -> bool:
        return done

    def note(restart: Restart) -> None:
        history.restarts.append(restart)
        report(f"{restart.name}: ready after {restart.ready:.1f} s, the old one had left {restart.drain:.1f} s later")

    chance = random.Random(options.seed + 1)
    marks = _share(options.conversations + options.clients)[options.conversations :]
    clients = [
        Client(f"client {at + 1}", cluster.gateway_url, own, history, random.Random(chance.random()))
        for at, own in enumerate(marks)
    ]
    async with asyncio.TaskGroup() as group:
        people: list[Owner | Client] = [*owners, *clients]
        for person in people:
            group.create_task(person.talk(over), name=f"talk of {person.name}")
        group.create_task(visit(cluster.ota_url, history, over), name="visitor")
        await asyncio.sleep(options.pause)
        for role in options.roles:
            report(f"restarting {role}")
            await cluster.restart(role, note)
            await asyncio.sleep(options.pause)
        history.over = asyncio.get_running_loop().time()
        done = True
        report("last turns")


@asynccontextmanager
async def _models(data: Path) -> AsyncIterator[str]:
    """Run the scripted models beside the block, and give their base URL."""
    port = choose()
    command = [sys.executable, "-m", "fleet.workbench.cluster", "models", str(port)]
    async with run_program("the scripted models", command, data / "models.log"):
        await until_accepting("the scripted models", port)
        yield f"http://{LOOPBACK}:{port}/v1"


def _share(people: int) -> list[list[int]]:
    """Give each user marks of its own."""
    each = len(MARKS) // people
    return [list(MARKS[at * each : (at + 1) * each]) for at in range(people)]
