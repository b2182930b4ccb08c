"""The pods of the rendered chart on a Docker engine: restricted, ready by their probes, spoken to, and drained."""

import asyncio
import json
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from fleet.workbench.conformance.steering.script import Round, Scene, long_text
from fleet.workbench.conformance.steering.server import Steering
from tests.chaos.members import Ensemble, Member
from tests.chaos.plan import Fault, Target
from tests.chaos.report import describe
from tests.chaos.run import Options, run
from tests.containers.engine import connect
from tests.containers.figures import note, report
from tests.containers.kubelet import Ending, Nodes, Pod, nodes
from tests.containers.site import host_address
from tests.support.chart import OWN_BROKER, OWN_REDIS, joined, render
from tests.support.gateway_client import gateway_client
from tests.support.kubernetes_api import TOKEN, kubernetes_api
from tests.support.ports import LOOPBACK, free_port
from tests.support.until import until

NODES = ("node-1", "node-2")
KUBERNETES = "kubernetes.default.svc"
PASSWORD = "abc123"
MADE = {
    "fleet-keys": {"keys": "k1 a-key-for-container-tests-only\n"},
    "redis-login": {"password": PASSWORD},
    "model-keys": dict.fromkeys(("LLM_API_KEY", "ASR_API_KEY", "TTS_API_KEY"), "none"),
}
USERS = {"mosquitto": 1883, "revocations": 10001, "redis": 999}
PODS = {"worker": 2, "gateway": 2, "api": 2, "edge": 2, "mosquitto": 1, "redis": 1}
NOT_READY = 503
DRAINED: tuple[tuple[Target, int], ...] = (("worker", 0), ("edge", 0), ("api", 0), ("worker", 1), ("edge", 1))


class PodMember(Member):
    """A pod as a process of a chaos run: SIGTERM ends it as `kubectl delete pod` does."""

    def __init__(self, pod: Pod, out: Path) -> None:
        super().__init__(pod.name, [], out / f"{pod.name}.log", {})
        self.pod = pod
        self.endings: list[Ending] = []
        self._thread = ThreadPoolExecutor(1, pod.name)
        self._last = self._thread.submit(lambda: None)

    @property
    def alive(self) -> bool:
        return self.pod.running or not self._last.done()

    def is_ready(self) -> bool:
        return self.pod.ready

    def start(self) -> None:
        if not self.pod.running:
            self._last = self._thread.submit(self.pod.start)

    def send(self, number: signal.Signals) -> None:
        assert number == signal.SIGTERM
        self._last = self._thread.submit(lambda: self.endings.append(self.pod.end()))

    def discard(self) -> None:
        self._thread.shutdown()
        self.log.write_bytes(self.pod.logs + self.pod.container().logs())


@pytest.fixture(scope="module")
def models() -> tuple[str, int]:
    """Where the scripted models listen, as pods reach them."""
    engine = connect()
    try:
        return host_address(engine), free_port()
    finally:
        engine.close()


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, models: tuple[str, int]) -> Iterator[Nodes]:
    """All pods of the chart, ready: with its own broker and Redis, and an edge on each of two nodes."""
    folder, mqtt, known = tmp_path_factory.mktemp("nodes"), free_port(), dict[str, object]()
    with start_blocking_portal() as portal:
        serving = kubernetes_api(folder / "api", known, models[0], 443, KUBERNETES)
        with portal.wrap_async_context_manager(serving) as (_, cluster):
            token = {"token": TOKEN, "ca.crt": cluster.ca_file.read_text(), "namespace": "calls"}
            published = {"voice-fleet-mosquitto": {1883: mqtt}}
            with nodes("fleet-nodes", folder, MADE, token, {KUBERNETES: models[0]}, published) as made:
                for node in NODES:
                    made.add(node)
                    known[node] = {"metadata": {"labels": {"fleet/public-host": made.addresses[node]}}}
                began = time.monotonic()
                made.install(render(values(f"http://{models[0]}:{models[1]}/v1", f"{LOOPBACK}:{mqtt}")))
                note("all pods of the chart ready", f"{time.monotonic() - began:.0f} s")
                yield made


def values(models: str, broker: str) -> dict[str, Any]:
    endpoints = {name: {"baseUrl": models, "model": "scripted"} for name in ("llm", "asr", "tts")}
    settings = {"FLEET_LANGUAGE": "en", "FLEET_LOG_PII": True}
    own = {
        "broker": {"public": broker},
        "activation": "open",
        "logLevel": "debug",
        "settings": settings,
        "models": {"existingSecret": "model-keys", **endpoints},
    }
    return joined(OWN_BROKER, OWN_REDIS, own)


def test_each_container_is_as_restricted_as_the_manifest_says(release: Nodes) -> None:
    for pod in release.pods:
        for name in (one["name"] for one in pod.spec["containers"]):
            assert pod.execute("sh", "-c", "touch /x /usr/x /etc/x", container=name)[0] != 0, name
            status = pod.execute("cat", "/proc/1/status", container=name)[1]
            found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            assert int(found["CapEff"], 16) == 0 and found["NoNewPrivs"] == "1" and found["Seccomp"] == "2", name
            assert {int(user) for user in found["Uid"].split()} == {USERS.get(name, 10001)}, name


def test_every_workload_runs_and_no_probe_failed(release: Nodes) -> None:
    assert {component: len(release.of(component)) for component in PODS} == PODS
    assert [f"{pod.name}: {fault}" for pod in release.pods for fault in pod.faults] == []
    for pod in release.pods:
        for port in (port for container in pod.spec["containers"] for port in container.get("ports", [])):
            if port.get("protocol") != "UDP":
                socket.create_connection((pod.address, port["containerPort"]), timeout=5).close()


def test_an_edge_finds_its_address_by_its_node_and_uses_the_native_part(release: Nodes) -> None:
    for pod, node in zip(release.of("edge"), NODES, strict=True):
        lines = [json.loads(line) for line in pod.container().logs().splitlines() if line.startswith(b"{")]
        told = {line["message"]: line for line in lines}
        assert told["public address"]["address"] == f"{release.addresses[node]}:8884"
        assert told["audio socket bound"]["native"] is True


async def test_a_gateway_that_ends_finishes_its_answer(release: Nodes, models: tuple[str, int]) -> None:
    pod = release.of("gateway")[0]
    url = f"ws://{pod.address}:9400"
    async with Steering(*models) as steering, gateway_client(url) as client, asyncio.TaskGroup() as group:
        mark = steering.free_mark()
        text = long_text(mark, 3)
        # Longer than its preStop hook.
        steering.add(Scene(mark, rounds=(Round(text, pace=0.3),)))
        await client.send("text_input", text=f"Talk about scene {mark}.")
        assert await steering.until(lambda: steering.asked(mark), 30)
        ended = group.create_task(asyncio.to_thread(pod.end))
        assert await steering.until(lambda: pod.terminating, 30)
        # Until all others know that it ends, new clients come.
        async with gateway_client(url):
            pass
        assert (await client.finish()).content == text
    check(pod, ended.result())
    assert ended.result().answers[:2] == [200, NOT_READY], "it was not asked while it finished"
    pod.start()
    until(lambda: pod.ready, 60)


async def test_no_turn_is_lost_while_one_pod_after_the_other_ends(
    release: Nodes, models: tuple[str, int], tmp_path: Path
) -> None:
    ensemble = ensemble_of(release, tmp_path)
    plan = [
        Fault(number, 12 * number, target, which, "restart", 0.0)
        for number, (target, which) in enumerate(DRAINED, start=1)
    ]
    options = Options(out=tmp_path, turns=12 * (len(plan) + 2), devices=6, models=models)
    outcome = await run(options, make=lambda *_: ensemble, plan=plan)
    report(outcome)
    assert not outcome.violations, describe(outcome)
    assert {turn.outcome for turn in outcome.turns} <= {"answered", "broken off"}
    for target, which in DRAINED:
        member = ensemble.find(target, which)
        assert isinstance(member, PodMember)
        check(member.pod, *member.endings)
        assert target != "edge" or NOT_READY in member.endings[0].answers, "it was not asked while it drained"


def ensemble_of(release: Nodes, out: Path) -> Ensemble:
    """Return the pods of which a device knows; the second api stays, as devices have its address and no Service."""

    def members(component: str) -> list[Member]:
        return [PodMember(pod, out) for pod in release.of(component)]

    [broker], [redis], (api, _) = members("mosquitto"), members("redis"), members("api")
    return Ensemble(
        workers=members("worker"),
        edges=members("edge"),
        broker=broker,
        redis=redis,
        api=api,
        ota_url=f"http://{release.of('api')[1].address}:8000/xiaozhi/ota/",
        redis_url=f"redis://:{PASSWORD}@{release.of('redis')[0].address}:6379/0",
    )


def test_all_pods_end_in_order(release: Nodes) -> None:
    # Workers after edges: they end the edges' sessions.
    for components in (("api", "gateway", "edge"), ("worker",), ("mosquitto",), ("redis",)):
        pods = [pod for one in components for pod in release.of(one)]
        with ThreadPoolExecutor(len(pods)) as threads:
            for pod, ending in zip(pods, threads.map(Pod.end, pods), strict=True):
                check(pod, ending)


def check(pod: Pod, ending: Ending) -> None:
    """Fail unless a pod ended by itself, within its time, without an error, and no probe ever failed for good."""
    assert not pod.faults, (pod.name, pod.faults)
    assert set(ending.codes.values()) == {0}, (pod.name, ending)
    assert ending.seconds < pod.spec["terminationGracePeriodSeconds"], (pod.name, ending)
