"""The processes of a cluster: started together, replaced one by one, ended in order."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from fleet.ground.errors import Unavailable
from fleet.workbench.cluster.door import Door, open_door
from fleet.workbench.cluster.free_ports import FreePorts
from fleet.workbench.cluster.ground import Ground, run_ground
from fleet.workbench.cluster.member import Member, Station
from fleet.workbench.cluster.plan import ROLES, Plan, Role
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.server import Value, fleet_command, write_settings

_DOORS: Final[dict[Role, int]] = {"api": 8000, "gateway": 9400}
"""Roles that clients reach by a port that stays, and which one that is."""
_UDP, _METRICS = 8884, 9464
_LAST_FIRST: Sequence[Sequence[Role]] = (("edge",), ("api", "gateway"), ("worker",))
"""The order of the end: sessions first, while there are still workers that say goodbye for them."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A process was replaced: when that began on the loop's clock, and the seconds of its two parts."""

    role: Role
    name: str
    began: float
    ready: float
    """Until the new process was ready."""
    drain: float
    """From then until the old one had ended."""
    code: int | None
    """The old one's exit code; None when it had died before."""
    hasty: bool
    """Whether it dropped work that it should have handed over."""

    @property
    def seconds(self) -> float:
        return self.ready + self.drain


@dataclass(slots=True)
class Cluster:
    """The processes of all roles."""

    plan: Plan
    ports: FreePorts
    ground: Ground
    doors: dict[Role, Door]
    tasks: asyncio.TaskGroup
    report: Callable[[str], None]
    members: list[Member] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    """Members that ended without an order, and why."""
    _started: int = 0
    _one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def ota_url(self) -> str:
        """Where devices boot from."""
        return f"http://{LOOPBACK}:{self.doors['api'].port}/xiaozhi/ota/"

    @property
    def gateway_url(self) -> str:
        return f"ws://{LOOPBACK}:{self.doors['gateway'].port}"

    async def start(self) -> None:
        """Start all processes and wait until they are ready.

        Raises:
            Unavailable: One ended, or is not ready in time.
        """
        for role in ROLES:
            for number in range(1, self.plan.counts[role] + 1):
                self._launch(role, f"{role}-{number}")
        for member in list(self.members):
            await member.get_ready()
        self._point()

    async def restart(self, role: Role, on_end: Callable[[Restart], None] = lambda _: None) -> list[Restart]:
        """Replace the processes of a role, one after the other: the new one is ready before the old one is stopped.

        Args:
            role: Which one.
            on_end: Called for each process that was replaced.

        Raises:
            Unavailable: A new process did not get ready; the old ones go on.
        """
        found: list[Restart] = []
        async with self._one_by_one:
            for number in range(1, self.plan.counts[role] + 1):
                found.append(await self._replace(role, f"{role}-{number}"))
                on_end(found[-1])
        return found

    async def end(self) -> None:
        """End all processes in order."""
        for roles in _LAST_FIRST:
            async with asyncio.TaskGroup() as group:
                for member in self.members:
                    if member.role in roles:
                        group.create_task(member.leave(), name=f"end {member.name}")

    async def _replace(self, role: Role, name: str) -> Restart:
        clock = asyncio.get_running_loop().time
        began = clock()
        old = next((one for one in self.members if one.name == name and one.serves), None)
        new = self._launch(role, name)
        try:
            await new.get_ready()
        except Unavailable:
            await new.leave()
            raise
        ready = clock()
        self._point(without=old)
        if old is not None:
            await old.leave()
        hasty, code = (old.hasty, old.code) if old else (False, None)
        return Restart(role, name, began, ready - began, clock() - ready, code, hasty)

    def _launch(self, role: Role, name: str) -> Member:
        self._started += 1
        station = self._station(role)
        config = self.plan.data / "settings" / f"{name}.{self._started}.toml"
        write_settings(self._settings(role, station), config)
        log = self.plan.data / "logs" / f"{name}.{self._started}.log"
        member = Member(role, name, fleet_command(config, role), log, station, self.plan.patience)
        self.members.append(member)
        self.tasks.create_task(self._attend(member), name=f"run {name}")
        return member

    async def _attend(self, member: Member) -> None:
        await member.run()
        self.members.remove(member)
        self._point()
        station = member.station
        for port in (station.metrics, station.port):
            self.ports.give_back(port)
        self.ports.give_back(station.udp, socket.SOCK_DGRAM)
        if member.death:
            self.deaths.append(member.death)
            self.report(f"{member.death}\n{member.last_words()}")

    def _station(self, role: Role) -> Station:
        return Station(
            metrics=self.ports.take(_METRICS),
            port=self.ports.take() if role in _DOORS else 0,
            udp=self.ports.take(_UDP, socket.SOCK_DGRAM) if role == "edge" else 0,
        )

    def _settings(self, role: Role, station: Station) -> dict[str, Value]:
        fixed: dict[str, Value] = {
            **self.ground.settings,
            "http_host": LOOPBACK,
            "http_public": f"http://{LOOPBACK}:{self.doors['api'].port}",
            "public_host": LOOPBACK,
            "udp_host": LOOPBACK,
            "cloud_host": LOOPBACK,
            "metrics_host": LOOPBACK,
            "metrics_port": station.metrics,
            "data_dir": str(self.plan.data),
            "log_format": "json",
        }
        match role:
            case "edge":
                fixed |= {"udp_port": station.udp, "udp_public": f"{LOOPBACK}:{station.udp}"}
            case "api":
                fixed["http_port"] = station.port
            case "gateway":
                fixed["cloud_port"] = station.port
        return {**self.plan.settings, **fixed}

    def _point(self, without: Member | None = None) -> None:
        """Route the ports to the processes that serve; one that has just started is skipped until it answers."""
        for role, door in self.doors.items():
            serving = [one for one in self.members if one.role == role and one.serves and one is not without]
            door.targets = tuple(one.station.port for one in serving)


@asynccontextmanager
async def run_cluster(plan: Plan, report: Callable[[str], None]) -> AsyncIterator[Cluster]:
    """Run a cluster beside the block; the block begins when all of it is ready, and its end ends all in order.

    Args:
        plan: What it is to be like.
        report: Called with what is being done, and with processes that end by themselves.

    Raises:
        ConfigError: A program is missing, or the plugin cannot be built.
        Unavailable: The broker or Redis ended, or something did not get ready.
    """
    for folder in (plan.data, plan.data / "logs", plan.data / "settings"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ports = FreePorts(usual=plan.usual_ports)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        doors = {role: await enter(open_door(ports.take(usual))) for role, usual in _DOORS.items()}
        ground = await enter(run_ground(plan, ports, report))
        async with asyncio.TaskGroup() as tasks:
            cluster = Cluster(plan, ports, ground, doors, tasks, report)
            try:
                report("starting " + ", ".join(f"{count} × {role}" for role, count in plan.counts.items()))
                await cluster.start()
                yield cluster
            finally:
                await cluster.end()
