"""A broker with the plugin and a Redis, and any number of role processes on them."""

import math
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis

from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import shard_of
from tests.support.mosquitto_server import MosquittoServer
from tests.support.patience import EDGE_SECONDS
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import running
from tests.support.redis_server import RedisServer
from tests.support.role_process import RoleProcess
from tests.support.until import until

SHARDS = 16
KEYS = "site:a-key-for-role-tests-1"
NOWHERE = f"http://{LOOPBACK}:9/v1"
"""For roles that need no model: nobody speaks."""


class RoleSite:
    """Starts roles and looks into Redis from outside.

    Args:
        directory: For logs and data.
        models: Base URL of the chat model, recognition and the voice.
        durable: Whether Redis keeps its data when it is killed.
    """

    def __init__(self, directory: Path, models: str, *, durable: bool) -> None:
        self.keys = CredentialKeys(KEYS)
        self.directory = directory
        self.roles: list[RoleProcess] = []
        for name in ("broker", "redis"):
            (directory / name).mkdir()
        self.broker = MosquittoServer(directory / "broker", self.keys)
        self.redis = RedisServer(directory / "redis", durable=durable)
        self.http_port = free_port()
        self._models = models

    @property
    def ota(self) -> str:
        return f"http://{LOOPBACK}:{self.http_port}/xiaozhi/ota/"

    def start(self, role: str, **settings: str) -> RoleProcess:
        """Start a role; it may not be ready yet."""
        models = {f"{model}_BASE_URL": self._models for model in ("LLM", "ASR", "TTS")}
        keys = {} if "FLEET_KEYS_FILE" in settings else {"FLEET_KEYS": KEYS}
        process = RoleProcess(
            role,
            {
                **models,
                **keys,
                "FLEET_MQTT_URL": self.broker.url,
                "FLEET_REDIS_URL": self.redis.url,
                "FLEET_PUBLIC_HOST": LOOPBACK,
                "FLEET_MQTT_PUBLIC": f"{LOOPBACK}:{self.broker.port}",
                "FLEET_SHARDS": str(SHARDS),
                **settings,
            },
            self.directory / f"{role}-{len(self.roles)}.log",
        )
        self.roles.append(process)
        return process

    def worker(self, **settings: str) -> RoleProcess:
        return self.start("worker", **settings)

    def edge(self, *, mortal: bool = False, **settings: str) -> RoleProcess:
        """Start an edge. Only when it is mortal its end is noticed soon: one that stands still keeps its sessions."""
        port = free_port(socket.SOCK_DGRAM)
        place = {"FLEET_UDP_HOST": LOOPBACK, "FLEET_UDP_PORT": str(port), "FLEET_UDP_PUBLIC": f"{LOOPBACK}:{port}"}
        # A conversation in which nobody speaks lasts as long as it may: on a busy machine a test needs that.
        patient = {"FLEET_IDLE_SECONDS": "110", EDGE_SECONDS: "10" if mortal else "240"}
        return self.start("edge", **{**place, **patient, **settings})

    def api(self) -> RoleProcess:
        return self.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(self.http_port))

    def owners(self) -> dict[int, str]:
        """Return which worker owns each shard that is owned."""
        with redis.Redis.from_url(self.redis.url, decode_responses=True) as client:
            found = {shard: client.hget(f"f:{{{shard}}}:own", "w") for shard in range(SHARDS)}
        return {shard: str(owner) for shard, owner in found.items() if owner}

    def spread(self) -> list[int]:
        """Return how many shards each worker owns, the smallest number first."""
        owners = list(self.owners().values())
        return sorted(owners.count(worker) for worker in set(owners))

    def until_spread(self, *wanted: int, seconds: float = 240.0) -> None:
        """Return when the workers own so many shards each, and the broker keeps what devices say for all of these.

        What a device says before the first owner of its shard has subscribed is lost. Workers tell that they have with
        the log level `debug` only.
        """
        until(lambda: self.spread() == sorted(wanted) and self._heard() >= sum(wanted), seconds)

    def _heard(self) -> float:
        """Return how many shards have been subscribed to; without end if the workers do not tell it."""
        workers = [role for role in self.roles if role.role == "worker" and role.tells]
        if not workers:
            return math.inf
        lines = [line for worker in workers for line in list(worker.lines)]
        return len({line["shard"] for line in lines if line["message"] == "shard connected"})

    def online(self, mac: str) -> bool:
        """Return whether a device is known to be connected."""
        with redis.Redis.from_url(self.redis.url, decode_responses=True) as client:
            return client.hget(f"f:{{{shard_of(mac, SHARDS)}}}:d:{mac}", "on") == "1"

    def until_heard(self, macs: Iterable[str], seconds: float = 240.0) -> None:
        """Return when these are known to be connected: the first owner of a shard subscribes after it has it."""
        until(lambda: all(self.online(mac) for mac in macs), seconds)

    def edges(self) -> int:
        """Return how many edges live."""
        with redis.Redis.from_url(self.redis.url) as client:
            return sum(bool(client.exists(f"edge:{name.decode()}")) for name in client.smembers("edges"))


def macs(count: int) -> list[str]:
    """Return different devices."""
    return [f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(count)]


def one_of_each_shard() -> list[str]:
    """Return a device of each shard, in the shards' order."""
    found: dict[int, str] = {}
    for mac in macs(4096):
        found.setdefault(shard_of(mac, SHARDS), mac)
    return [found[shard] for shard in range(SHARDS)]


@contextmanager
def role_site(directory: Path, models: str = NOWHERE, *, durable: bool = False) -> Iterator[RoleSite]:
    """Run a site until the end of the block; roles are started by the test."""
    site = RoleSite(directory, models, durable=durable)
    with ExitStack() as stack:
        stack.enter_context(running(site.broker))
        stack.enter_context(running(site.redis))
        try:
            yield site
        finally:
            for role in site.roles:
                role.discard()
