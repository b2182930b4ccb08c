"""A Cluster of three primaries, the first of them with a replica."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.crc import key_slot

from tests.support.ports import LOOPBACK, free_port
from tests.support.redis_engines import Engine, EngineProcess
from tests.support.until import until

_SLOTS = 16384
_PATIENCE = 240.0
_NOTICE_MS = 500
_FAILOVER_SECONDS = 12.0
"""After five, a replica has given up what it was asked for; after some more, the others vote again."""
_PRIMARIES = 3


class ClusterSet:
    """Four servers that make up a Cluster.

    Args:
        directory: For the files of the servers.
        timeout_ms: How long a primary may be silent before the replica takes its place. A busy machine makes all of
            them silent, so it is short only once a primary was killed.
        engine: What they are.
    """

    def __init__(self, directory: Path, timeout_ms: int = 240_000, engine: Engine = "redis") -> None:
        self.buses: list[int] = []
        self._timeout_ms = timeout_ms
        self.nodes = [self._node(directory, engine) for _ in range(_PRIMARIES + 1)]

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'{LOOPBACK}:{node.port}' for node in self.nodes[:2])}"

    def primary_of(self, key: str) -> int:
        """Return the number of the primary that a key belongs to at the start."""
        return min(key_slot(key.encode()) * _PRIMARIES // _SLOTS, _PRIMARIES - 1)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        for number in range(_PRIMARIES):
            self.ask(number, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            first = -(-number * _SLOTS // _PRIMARIES)
            last = -(-(number + 1) * _SLOTS // _PRIMARIES) - 1
            self.ask(number, "CLUSTER", "ADDSLOTSRANGE", first, last)
        until(self._met)
        self.ask(_PRIMARIES, "CLUSTER", "REPLICATE", self.ask(0, "CLUSTER", "MYID"))
        until(lambda: "master_link_status:up" in self.ask(_PRIMARIES, "INFO", "replication"))
        until(lambda: all("slave" in self.ask(number, "CLUSTER", "NODES") for number in range(_PRIMARIES)))
        for number in range(len(self.nodes)):
            self.ask(number, "CONFIG", "SET", "cluster-node-timeout", self._timeout_ms)

    def fail_over(self) -> None:
        """Let the replica take the place of its primary, which it is asked for."""
        give_up = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up:
            with suppress(redis.ResponseError):  # it has done so already
                self.ask(_PRIMARIES, "CLUSTER", "FAILOVER")
            try_again = time.monotonic() + _FAILOVER_SECONDS
            while time.monotonic() < try_again:
                if "role:master" in self.ask(_PRIMARIES, "INFO", "replication"):
                    return
                time.sleep(0.02)
        pytest.fail("the replica did not take over", pytrace=False)

    def kill(self, number: int) -> None:
        """Kill a node, and let the others notice it soon."""
        self.nodes[number].kill()
        for other in range(len(self.nodes)):
            if other != number:
                self.ask(other, "CONFIG", "SET", "cluster-node-timeout", _NOTICE_MS)

    def flush(self) -> None:
        """Forget all keys and functions."""
        for number in range(_PRIMARIES):
            self.ask(number, "FLUSHALL")
            self.ask(number, "FUNCTION", "FLUSH")

    def discard(self) -> None:
        for node in self.nodes:
            node.kill()

    def ask(self, number: int, *command: str | int) -> Any:
        """Send a command to one node."""
        with redis.Redis(port=self.nodes[number].port, decode_responses=True) as client:
            client.response_callbacks.clear()
            return client.execute_command(*command)

    def _met(self) -> bool:
        """Introduce the nodes to the first one, again those that it gave up; return whether all know all."""
        known: str = self.ask(0, "CLUSTER", "NODES")
        for node, bus in zip(self.nodes[1:], self.buses[1:], strict=True):
            if f":{node.port}@" not in known:
                self.ask(0, "CLUSTER", "MEET", LOOPBACK, node.port, bus)
        return all(self._knows_all(number) for number in range(len(self.nodes)))

    def _knows_all(self, number: int) -> bool:
        info = self.ask(number, "CLUSTER", "INFO")
        nodes: str = self.ask(number, "CLUSTER", "NODES")
        known = nodes.count(" connected") == len(self.nodes) and "handshake" not in nodes
        return "cluster_state:ok" in info and known

    def _node(self, directory: Path, engine: Engine) -> EngineProcess:
        bus = free_port()
        self.buses.append(bus)
        return EngineProcess(
            engine,
            directory,
            *("--cluster-enabled", "yes", "--cluster-port", str(bus)),
            *("--cluster-node-timeout", "5000", "--cluster-replica-validity-factor", "0"),
        )
