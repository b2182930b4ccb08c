"""The processes of a cluster: starts them together, replaces them one by one, stops them in order."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from fleet.ground.errors import Unavailable
from fleet.workbench.cluster.backing_services import BackingServices, run_backing_services
from fleet.workbench.cluster.options import ROLES, ClusterOptions, Role
from fleet.workbench.cluster.port_allocator import PortAllocator
from fleet.workbench.cluster.role_process import ProcessPorts, RoleProcess
from fleet.workbench.cluster.tcp_proxy import TcpProxy, run_tcp_proxy
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.local_servers.server import Value, fleet_command, write_settings

_PROXIES: Final[dict[Role, int]] = {"api": 8000, "gateway": 9400}
"""Roles behind a TCP proxy, and the default port of each proxy."""
_UDP, _METRICS = 8884, 9464
_STOP_ORDER: Sequence[Sequence[Role]] = (("edge",), ("api", "gateway"), ("worker",))
"""Stop edges and sessions first: workers must still run to say goodbye to the devices."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The replacement of a process."""

    role: Role
    name: str
    began: float
    """Start of the replacement, on the loop's clock."""
    ready: float
    """Seconds from the start until the new process was ready."""
    drain: float
    """Seconds from then until the old process had ended."""
    code: int | None
    """Exit code of the old process; None if it had ended before."""
    dropped_work: bool
    """Whether the old process dropped work that it should have handed over."""

    @property
    def seconds(self) -> float:
        return self.ready + self.drain


@dataclass(slots=True)
class Cluster:
    """The processes of all roles."""

    options: ClusterOptions
    allocator: PortAllocator
    services: BackingServices
    proxies: dict[Role, TcpProxy]
    tasks: asyncio.TaskGroup
    report: Callable[[str], None]
    processes: list[RoleProcess] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Reasons of the processes that ended without a request."""
    _started: int = 0
    _restart_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def ota_url(self) -> str:
        """Bootstrap address for devices."""
        return f"http://{LOOPBACK}:{self.proxies['api'].port}/xiaozhi/ota/"

    @property
    def gateway_url(self) -> str:
        return f"ws://{LOOPBACK}:{self.proxies['gateway'].port}"

    async def start(self) -> None:
        """Start all processes and wait until they are ready.

        Raises:
            Unavailable: A process ended, or was not ready in time.
        """
        for role in ROLES:
            for number in range(1, self.options.counts[role] + 1):
                self._start_process(role, f"{role}-{number}")
        for process in list(self.processes):
            await process.wait_until_ready()
        self._update_backends()

    async def restart(self, role: Role, on_end: Callable[[Restart], None] = lambda _: None) -> list[Restart]:
        """Replace the processes of a role, one after the other; each new process is ready before the old one stops.

        Args:
            role: Of the processes.
            on_end: Called after each replacement.

        Raises:
            Unavailable: A new process was not ready in time; the old one keeps running.
        """
        restarts: list[Restart] = []
        async with self._restart_lock:
            for number in range(1, self.options.counts[role] + 1):
                restarts.append(await self._replace(role, f"{role}-{number}"))
                on_end(restarts[-1])
        return restarts

    async def stop(self) -> None:
        """Stop all processes in order."""
        for roles in _STOP_ORDER:
            async with asyncio.TaskGroup() as group:
                for process in self.processes:
                    if process.role in roles:
                        group.create_task(process.stop(), name=f"stop {process.name}")

    async def _replace(self, role: Role, name: str) -> Restart:
        clock = asyncio.get_running_loop().time
        began = clock()
        old = next((one for one in self.processes if one.name == name and one.is_serving), None)
        new = self._start_process(role, name)
        try:
            await new.wait_until_ready()
        except Unavailable:
            await new.stop()
            raise
        ready = clock()
        self._update_backends(without=old)
        if old is not None:
            await old.stop()
        dropped_work, code = (old.dropped_work, old.code) if old else (False, None)
        return Restart(role, name, began, ready - began, clock() - ready, code, dropped_work)

    def _start_process(self, role: Role, name: str) -> RoleProcess:
        self._started += 1
        ports = self._allocate_ports(role)
        config = self.options.data / "settings" / f"{name}.{self._started}.toml"
        write_settings(self._settings(role, ports), config)
        log = self.options.data / "logs" / f"{name}.{self._started}.log"
        process = RoleProcess(role, name, fleet_command(config, role), log, ports, self.options.stop_seconds)
        self.processes.append(process)
        self.tasks.create_task(self._watch(process), name=f"run {name}")
        return process

    async def _watch(self, process: RoleProcess) -> None:
        await process.run()
        self.processes.remove(process)
        self._update_backends()
        ports = process.ports
        for port in (ports.metrics, ports.port):
            self.allocator.release(port)
        self.allocator.release(ports.udp, socket.SOCK_DGRAM)
        if process.failure:
            self.failures.append(process.failure)
            self.report(f"{process.failure}\n{process.log_tail()}")

    def _allocate_ports(self, role: Role) -> ProcessPorts:
        return ProcessPorts(
            metrics=self.allocator.take(_METRICS),
            port=self.allocator.take() if role in _PROXIES else 0,
            udp=self.allocator.take(_UDP, socket.SOCK_DGRAM) if role == "edge" else 0,
        )

    def _settings(self, role: Role, ports: ProcessPorts) -> dict[str, Value]:
        fixed: dict[str, Value] = {
            **self.services.settings,
            "http_host": LOOPBACK,
            "http_public": f"http://{LOOPBACK}:{self.proxies['api'].port}",
            "public_host": LOOPBACK,
            "udp_host": LOOPBACK,
            "cloud_host": LOOPBACK,
            "metrics_host": LOOPBACK,
            "metrics_port": ports.metrics,
            "data_dir": str(self.options.data),
            "log_format": "json",
        }
        match role:
            case "edge":
                fixed |= {"udp_port": ports.udp, "udp_public": f"{LOOPBACK}:{ports.udp}"}
            case "api":
                fixed["http_port"] = ports.port
            case "gateway":
                fixed["cloud_port"] = ports.port
        return {**self.options.settings, **fixed}

    def _update_backends(self, without: RoleProcess | None = None) -> None:
        """Route the proxies to the processes that are serving; a proxy skips a process until it accepts connections."""
        for role, proxy in self.proxies.items():
            serving = [one for one in self.processes if one.role == role and one.is_serving and one is not without]
            proxy.backends = tuple(one.ports.port for one in serving)


@asynccontextmanager
async def run_cluster(options: ClusterOptions, report: Callable[[str], None]) -> AsyncIterator[Cluster]:
    """Run a cluster during the block; the block begins when all processes are ready.

    Args:
        options: Of the cluster.
        report: Called with each step, and with the log of processes that end by themselves.

    Raises:
        ConfigError: A program is missing, or the plugin cannot be built.
        Unavailable: The broker or Redis ended, or a process was not ready in time.
    """
    for folder in (options.data, options.data / "logs", options.data / "settings"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    allocator = PortAllocator(prefer_first=options.default_ports)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        proxies = {role: await enter(run_tcp_proxy(allocator.take(port))) for role, port in _PROXIES.items()}
        services = await enter(run_backing_services(options, allocator, report))
        async with asyncio.TaskGroup() as tasks:
            cluster = Cluster(options, allocator, services, proxies, tasks, report)
            try:
                report("starting " + ", ".join(f"{count} × {role}" for role, count in options.counts.items()))
                await cluster.start()
                yield cluster
            finally:
                await cluster.stop()
