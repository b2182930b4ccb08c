"""Runs a check: users talk to a cluster while every process of every role is replaced."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.workbench.cluster.check.bootstrap_poller import poll_bootstrap
from fleet.workbench.cluster.check.device_user import DeviceUser
from fleet.workbench.cluster.check.gateway_client import GatewayClient
from fleet.workbench.cluster.check.history import History
from fleet.workbench.cluster.check.judge import Verdict, judge
from fleet.workbench.cluster.cluster import Cluster, Restart, run_cluster
from fleet.workbench.cluster.options import ROLES, ClusterOptions, Role, process_counts
from fleet.workbench.conformance.own_server import steered
from fleet.workbench.conformance.steering.voice import MARKS
from fleet.workbench.local_servers.module_command import module_command
from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, choose
from fleet.workbench.local_servers.process import run_program
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile

_BOOT_SECONDS = 60.0
_DISCOVERY_SECONDS = 10.0
_PROFILE = replace(find_profile("P1"), extra_tools=1)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check; `pause` is the time between the restarts in seconds; users talk all the time."""

    data: Path
    conversations: int = 50
    clients: int = 4
    workers: int = 2
    edges: int = 2
    pause: float = 3.0
    seed: int = 1
    roles: Sequence[Role] = ROLES


async def check(options: CheckOptions, report: Callable[[str], None] = lambda _: None) -> Verdict:
    """Run a check.

    Args:
        options: Of the check.
        report: Called with each step.

    Raises:
        ConfigError: A program is missing, or the plugin cannot be built.
        Unavailable: The cluster was not ready in time.
    """
    history = History()
    for folder in (options.data, options.data / "devices"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(_models(options.data))
        cluster_options = ClusterOptions(
            data=options.data / "cluster",
            counts=process_counts(options.workers, options.edges),
            settings={**steered(models), "llm_model": "scripted", "log_level": "debug", "log_pii": True},
            default_ports=False,
        )
        cluster = await stack.enter_async_context(run_cluster(cluster_options, report))
        report(f"{options.conversations} devices boot")
        users = await stack.enter_async_context(_run_users(cluster, history, options))
        await _restart_all(cluster, users, history, options, report)
        await _finish(users, options.data / "devices")
        for failure in cluster.failures:
            history.add_fault("process died", failure)
    return judge(history)


@asynccontextmanager
async def _run_users(cluster: Cluster, history: History, options: CheckOptions) -> AsyncIterator[list[DeviceUser]]:
    """Run devices during the block, each with a user; wait until the server knows their tools."""
    devices = [
        SimDevice(_PROFILE, ota_url=cluster.ota_url, mac=f"02:c1:05:00:{at >> 8:02x}:{at & 255:02x}", seed=at)
        for at in range(options.conversations)
    ]
    booted, over = [asyncio.Event() for _ in devices], asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for device, up in zip(devices, booted, strict=True):
            group.create_task(_run_device(device, up, over), name=f"device {device.mac}")
        for up in booted:
            await up.wait()
        rng, marks = random.Random(options.seed), _share(options.conversations + options.clients)
        users = [DeviceUser(one, marks[at], history, random.Random(rng.random())) for at, one in enumerate(devices)]
        async with asyncio.TaskGroup() as discovery:
            for user in users:
                # If the limit passes, the server asks at the first hello.
                discovery.create_task(user.wait_for_discovery(_DISCOVERY_SECONDS), name=f"tools of {user.name}")
        yield users
        over.set()


async def _finish(users: list[DeviceUser], folder: Path) -> None:
    async with asyncio.TaskGroup() as group:
        for user in users:
            group.create_task(user.finish(folder), name=f"end of {user.name}")


async def _run_device(device: SimDevice, up: asyncio.Event, over: asyncio.Event) -> None:
    async with device.running(_BOOT_SECONDS):
        up.set()
        await over.wait()


async def _restart_all(
    cluster: Cluster, users: list[DeviceUser], history: History, options: CheckOptions, report: Callable[[str], None]
) -> None:
    """Replace the processes while all users talk."""
    done = False

    def over() -> bool:
        return done

    def record(restart: Restart) -> None:
        history.restarts.append(restart)
        report(f"{restart.name}: ready after {restart.ready:.1f} s, the old process ended {restart.drain:.1f} s later")

    rng = random.Random(options.seed + 1)
    marks = _share(options.conversations + options.clients)[options.conversations :]
    clients = [
        GatewayClient(f"client {at + 1}", cluster.gateway_url, own, history, random.Random(rng.random()))
        for at, own in enumerate(marks)
    ]
    async with asyncio.TaskGroup() as group:
        talkers: list[DeviceUser | GatewayClient] = [*users, *clients]
        for talker in talkers:
            group.create_task(talker.talk(over), name=f"talk of {talker.name}")
        group.create_task(poll_bootstrap(cluster.ota_url, history, over), name="bootstrap poller")
        await asyncio.sleep(options.pause)
        for role in options.roles:
            report(f"restarting {role}")
            await cluster.restart(role, record)
            await asyncio.sleep(options.pause)
        history.over = asyncio.get_running_loop().time()
        done = True
        report("last turns")


@asynccontextmanager
async def _models(data: Path) -> AsyncIterator[str]:
    """Run the scripted models during the block, and give their base URL."""
    port = choose()
    command = module_command("fleet.workbench.cluster", "models", str(port))
    async with run_program("the scripted models", command, data / "models.log"):
        await until_accepting("the scripted models", port)
        yield f"http://{LOOPBACK}:{port}/v1"


def _share(users: int) -> list[list[int]]:
    """Return different marks for each user."""
    each = len(MARKS) // users
    return [list(MARKS[at * each : (at + 1) * each]) for at in range(users)]
