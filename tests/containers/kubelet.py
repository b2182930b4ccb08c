"""Runs the pods of a rendered chart on a Docker engine, as kubelet would on nodes that are containers.

A pod is a container that does nothing and has the address, and the pod's containers in its network. A pod on the
network of its node shares that of the node. A Service is a name for the pods that it selects, ready or not.
"""

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.containers.engine import connect
from tests.containers.machine import address_of, execute
from tests.containers.manifest import Data, Volumes, collect_data, collect_environment, restrictions
from tests.containers.probes import Probe, probes_of
from tests.support.kubernetes_schemas import Manifest
from tests.support.ports import LOOPBACK
from tests.support.until import until

_IDLE = "debian:12.11-slim"
_LOOK = 0.05
_READY_SECONDS = 180.0
_NEEDED = ("redis", "mosquitto")
_KINDS = ("Deployment", "DaemonSet", "StatefulSet")


@dataclass(slots=True)
class Ending:
    """How a pod ended: seconds since the order and since SIGTERM, and the containers' exit codes.

    `answers` are the different answers to the readiness probe from the order on, in their order.
    """

    seconds: float = 0.0
    term_seconds: float = 0.0
    codes: dict[str, int] = field(default_factory=dict)
    answers: list[int] = field(default_factory=list)


class Pod:
    """One pod; `start` may be called again after `end`, and makes a new one.

    Args:
        site: Where it runs.
        template: Of its workload.
        name: Of the pod.
        node: Its node.
    """

    def __init__(self, site: "Nodes", template: Manifest, name: str, node: str) -> None:
        self.name, self.spec = name, template["spec"]
        self.component = str(template["metadata"]["labels"]["app.kubernetes.io/component"])
        self.running = self.terminating = False
        self.ready = False
        self.faults: list[str] = []
        """Probes that failed so often that kubelet would restart a container."""
        self.logs = b""
        self._site, self._labels, self._node = site, template["metadata"]["labels"], node
        self._sandbox: Any = None
        self._containers: dict[str, Any] = {}
        self._probes: dict[str, dict[str, Probe]] = {}
        self._thread = threading.Thread()

    @property
    def address(self) -> str:
        return address_of(self._sandbox)

    def container(self, name: str = "") -> Any:
        """Return one of its containers, the first one without a name."""
        return self._containers[name or self.spec["containers"][0]["name"]]

    def execute(self, *command: str, container: str = "") -> tuple[int, str]:
        """Run a command in a container; return its exit code and what it wrote."""
        return execute(self.container(container), *command)

    def start(self) -> None:
        """Start its containers; from then on their probes are asked."""
        self._sandbox = self._site.sandbox(self.name, self._labels, self._node if self.spec.get("hostNetwork") else "")
        volumes = self._site.volumes(self.name, self.spec)
        for one in self.spec["containers"]:
            made = self._create(one, volumes)
            self._containers[one["name"]] = made
            made.start()
            self._probes[one["name"]] = probes_of(one, self.address, made)
        self.running, self.terminating = True, False
        self._thread = threading.Thread(target=self._watch, name=self.name, daemon=True)
        self._thread.start()

    def _create(self, container: Manifest, volumes: Volumes) -> Any:
        command = {"entrypoint": container["command"]} if "command" in container else {}
        return self._site.engine.containers.create(
            container["image"],
            container.get("args"),
            name=f"{self._site.name}-{self.name}-{container['name']}",
            environment=collect_environment(container, self._site.data, {"spec.nodeName": self._node}),
            network_mode=f"container:{self._sandbox.id}",
            **command,
            **restrictions(self.spec, container),
            **volumes.mounts(container),
        )

    def _watch(self) -> None:
        """Ask the probes until the pod is to end."""
        while not self.terminating:
            for name, probes in self._probes.items():
                self._ask(name, probes)
            self.ready = all(self._is_ready(probes) for probes in self._probes.values())
            time.sleep(_LOOK)

    def _ask(self, name: str, probes: dict[str, Probe]) -> None:
        started = "startup" not in probes or probes["startup"].passed
        for kind in ("readiness", "liveness") if started else ("startup",):
            if kind in probes and probes[kind].ask_if_due() and probes[kind].failed and kind != "readiness":
                self.faults.append(f"{name}: {kind} probe")

    @staticmethod
    def _is_ready(probes: dict[str, Probe]) -> bool:
        last = probes.get("readiness") or probes.get("startup")
        return last is None or last.passed

    def end(self) -> Ending:
        """End it: preStop, SIGTERM, and SIGKILL when the grace period is over."""
        self.terminating, self.ready = True, False
        self._thread.join()
        ending, began = Ending(), time.monotonic()
        over = threading.Event()
        with ThreadPoolExecutor() as threads:
            threads.submit(self._follow_readiness, ending, over)
            for name, code, seconds in threads.map(lambda one: self._end(one, began), self.spec["containers"]):
                ending.codes[name], ending.term_seconds = code, max(ending.term_seconds, seconds)
            over.set()
        ending.seconds = time.monotonic() - began
        self.logs = b"".join(one.logs() for one in self._containers.values())
        self.remove()
        return ending

    def _end(self, container: Manifest, began: float) -> tuple[str, int, float]:
        running = self._containers[container["name"]]
        hook = container.get("lifecycle", {}).get("preStop", {}).get("exec")
        if hook:
            code, output = running.exec_run(hook["command"])
            assert code == 0, output
        sent = time.monotonic()
        running.kill("SIGTERM")
        deadline = threading.Timer(began + self.spec["terminationGracePeriodSeconds"] - sent, running.kill)
        deadline.start()
        code = running.wait()["StatusCode"]
        deadline.cancel()
        return container["name"], int(code), time.monotonic() - sent

    def _follow_readiness(self, ending: Ending, over: threading.Event) -> None:
        probe = next(iter(self._probes.values())).get("readiness")
        while probe and not over.wait(_LOOK):
            answer = probe.status() if "httpGet" in probe.spec else int(probe.succeeds())
            if ending.answers[-1:] != [answer]:
                ending.answers.append(answer)

    def remove(self) -> None:
        """Remove what is left of it."""
        self.terminating = True
        if self._thread.is_alive():
            self._thread.join()
        for one in self._containers.values():
            one.remove(force=True, v=True)
        if self._sandbox is not None and not self.spec.get("hostNetwork"):
            self._sandbox.remove(force=True)
        self._containers, self._probes, self._sandbox, self.running = {}, {}, None, False


class Nodes:
    """Nodes with the pods of one release.

    Args:
        name: Of the network and what is in it.
        folder: For volumes.
        made: Secrets that the operator made.
        token: What Kubernetes gives a service account.
        hosts: Names outside of the release, and their addresses.
        published: Ports of Services of the type LoadBalancer on loopback: name of the Service, its port, and that one.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        made: Data,
        token: Mapping[str, str],
        hosts: Mapping[str, str],
        published: Mapping[str, dict[int, int]],
    ) -> None:
        self.name, self.data = name, made
        self.engine = connect()
        self.pods: list[Pod] = []
        self.addresses: dict[str, str] = {}
        """Of the nodes."""
        self._folder, self._token, self._hosts, self._published = folder, token, hosts, published
        self._network = self.engine.networks.create(name)
        self._services: list[Manifest] = []
        self._nodes: dict[str, Any] = {}
        self._numbers = itertools.count()

    def add(self, node: str) -> None:
        """Start a node."""
        made = self._idle(node)
        made.reload()
        self._nodes[node] = made
        self.addresses[node] = made.attrs["NetworkSettings"]["Networks"][self.name]["IPAddress"]

    def install(self, manifests: list[Manifest]) -> None:
        """Start all pods of a release, those that others need first: a role without Redis ends, to be restarted."""
        self.data = collect_data(manifests, self.data)
        self._services = [one for one in manifests if one["kind"] == "Service" and one["spec"].get("selector")]
        for one in manifests:
            if one["kind"] in _KINDS:
                nodes = list(self._nodes) if one["kind"] == "DaemonSet" else list(self._nodes)[:1]
                copies = 1 if one["kind"] == "DaemonSet" else one["spec"]["replicas"]
                for number, node in enumerate(nodes * copies):
                    name = f"{one['metadata']['name']}-{number}"
                    self.pods.append(Pod(self, one["spec"]["template"], name, node))
        needed = [pod for one in _NEEDED for pod in self.of(one)]
        for pods in (needed, [pod for pod in self.pods if pod not in needed]):
            for pod in pods:
                pod.start()
            until(lambda: all(pod.ready for pod in self.pods if pod.running), _READY_SECONDS)

    def of(self, component: str) -> list[Pod]:
        """Return the pods of a component."""
        return [pod for pod in self.pods if pod.component == component]

    def sandbox(self, name: str, labels: Mapping[str, str], node: str) -> Any:
        """Return the container whose network a pod has: its node's, or a new one with the names of its Services."""
        if node:
            return self._nodes[node]
        chosen = [one for one in self._services if one["spec"]["selector"].items() <= labels.items()]
        return self._idle(name, *(one["metadata"]["name"] for one in chosen))

    def volumes(self, name: str, pod: Manifest) -> Volumes:
        token = self._token if pod["automountServiceAccountToken"] else {}
        folder = self._folder / f"{name}-{next(self._numbers)}"
        return Volumes(folder, self._folder / "claims" / name, pod, self.data, token)

    def _idle(self, name: str, *aliases: str) -> Any:
        ports = [item for alias in aliases for item in self._published.get(alias, {}).items()]
        made = self.engine.containers.create(
            _IDLE,
            ["sleep", "infinity"],
            name=f"{self.name}-{name}",
            hostname=name,
            extra_hosts=dict(self._hosts),
            ports={f"{port}/tcp": (LOOPBACK, outer) for port, outer in ports},
        )
        self.engine.networks.get("bridge").disconnect(made)
        self._network.connect(made, aliases=list(aliases))
        made.start()
        return made

    def remove(self) -> None:
        for pod in self.pods:
            pod.remove()
        for node in self._nodes.values():
            node.remove(force=True)
        self._network.remove()
        self.engine.close()


@contextmanager
def nodes(*arguments: Any) -> Iterator[Nodes]:
    """Make nodes; whatever runs on them ends with the block."""
    made = Nodes(*arguments)
    try:
        yield made
    finally:
        made.remove()
