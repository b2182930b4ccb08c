"""The processes of a run: two workers, two edges, an api, a broker and a Redis; each can be killed and restarted."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fleet.ground.errors import Unavailable
from fleet.ground.settings import Settings, variable
from fleet.workbench.local_servers.ports import LOOPBACK, accepts
from fleet.workbench.local_servers.process import find_program
from fleet.workbench.local_servers.server import Value, write_settings
from tests.chaos.plan import Target
from tests.support.forked import ForkedModule
from tests.support.mosquitto_server import shipped_config
from tests.support.plugin_build import build_plugin
from tests.support.ports import free_port
from tests.support.scraped import ready

KEYS = "chaos:a-key-for-chaos-runs-only"
READY_SECONDS = 240.0
START: Callable[..., subprocess.Popen[bytes] | ForkedModule] = subprocess.Popen
"""Starts a process; a short run may fork it."""
DRAIN_SECONDS = 40.0
"""Longest time that a process may take to end in order."""


def fork_modules(
    command: Sequence[str], *, stdin: int, stdout: IO[bytes], stderr: IO[bytes], env: Mapping[str, str]
) -> subprocess.Popen[bytes] | ForkedModule:
    """Start what a test starts: modules are forked from a process that has imported everything."""
    if sys.executable not in command:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
    at = command.index(sys.executable)
    assert command[at + 1] == "-m"
    return ForkedModule(command[at + 2 :], env, stdout.name)


class Member:
    """One process and what it is started with; it may be started again as often as it ended.

    Args:
        name: Its own, also that of its log.
        command: Program and arguments.
        log: File to which it writes.
        environment: Its whole environment.
        port: TCP port on which it answers when it is up, 0 for none.
        health: TCP port on which it says whether it is ready, 0 for none.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        port: int = 0,
        health: int = 0,
    ) -> None:
        self.name = name
        self.log = log
        self.drains: list[float] = []
        """Seconds that it took to end when it was asked to."""
        self._command = [*_leash(), *command]
        self._environment = dict(environment)
        self._port, self._health = port, health
        self._child: subprocess.Popen[bytes] | ForkedModule | None = None

    @property
    def pid(self) -> int:
        return self._child.pid if self._child else 0

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def frozen(self) -> bool:
        """Whether it is stopped by a signal."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    def is_ready(self) -> bool:
        """Whether it accepts connections and says that it is ready, as far as it can; may block for some seconds."""
        return (not self._port or accepts(self._port)) and (not self._health or ready(self._health))

    def start(self) -> None:
        """Start it; returns at once."""
        self._let_go()
        with self.log.open("ab") as log:
            self._child = START(self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=self._environment)

    def wait_ready(self) -> None:
        """Wait until it accepts connections.

        Raises:
            Unavailable: It ended, or does not in time.
        """
        give_up = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if not self.alive or time.monotonic() > give_up:
                raise Unavailable(f"{self.name} did not get ready (log: {self.log})")
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        if self._child and self._child.poll() is None:
            self._child.send_signal(number)

    def order(self, order: Mapping[str, object]) -> None:
        """Write a line to its standard input, for `tests.chaos.puppet`."""
        if self._child and self._child.stdin and self.alive:
            try:
                self._child.stdin.write((json.dumps(order) + "\n").encode())
                self._child.stdin.flush()
            except BrokenPipeError:
                return

    def discard(self) -> None:
        """End it for good, whatever state it is in."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(READY_SECONDS)
            self._let_go()

    def _let_go(self) -> None:
        """Close the pipe to a process that has ended; an order that it did not read goes with it."""
        if self._child is not None and self._child.stdin:
            with suppress(BrokenPipeError):
                self._child.stdin.close()


@dataclass(slots=True)
class Ensemble:
    """All processes."""

    workers: list[Member]
    edges: list[Member]
    broker: Member
    redis: Member
    api: Member
    ota_url: str
    redis_url: str

    @property
    def all(self) -> list[Member]:
        return [self.redis, self.broker, self.api, *self.workers, *self.edges]

    def find(self, target: Target, which: int) -> Member:
        """Return the process that a fault is after."""
        alone = {"broker": self.broker, "redis": self.redis, "api": self.api}
        many = {"worker": self.workers, "edge": self.edges}.get(target) or [alone[target]]
        return many[which % len(many)]

    def start(self) -> None:
        """Start everything; the broker and Redis first.

        Raises:
            Unavailable: One does not get ready.
        """
        for member in self.all:
            member.start()
            if member in (self.broker, self.redis):
                member.wait_ready()
        self.api.wait_ready()

    def discard(self) -> None:
        for member in reversed(self.all):
            member.discard()


def build(out: Path, models_url: str, *, appendfsync: str = "always", **settings: Value) -> Ensemble:
    """Return the processes of a run, none of them started; everything that they write is under `out`.

    Args:
        out: Folder for logs, settings and Redis's data.
        models_url: Of the scripted models.
        appendfsync: Redis's. With `everysec` Redis may answer before it has written, while a slow disk is busy: killed
            then, it forgets calls that were begun. Only with `always` is what it answered for surely written.
        settings: Further settings of all roles.
    """
    mqtt, redis, http = free_port(), free_port(), free_port()
    common: dict[str, Value] = {
        "mqtt_url": f"mqtt://{LOOPBACK}:{mqtt}",
        "mqtt_public": f"{LOOPBACK}:{mqtt}",
        "redis_url": f"redis://{LOOPBACK}:{redis}/0",
        "keys": KEYS,
        "http_host": LOOPBACK,
        "http_port": http,
        "udp_host": LOOPBACK,
        "public_host": LOOPBACK,
        "language": "en",
        "log_level": "debug",
        "log_format": "json",
        "log_pii": True,
        **_steered(models_url),
        **settings,
    }
    return Ensemble(
        workers=[_role(out, "worker", number, common) for number in (1, 2)],
        edges=[_role(out, "edge", number, common) for number in (1, 2)],
        broker=_broker(out, mqtt),
        redis=_redis(out, redis, appendfsync),
        api=_role(out, "api", 0, common, http),
        ota_url=f"http://{LOOPBACK}:{http}/xiaozhi/ota/",
        redis_url=str(common["redis_url"]),
    )


def role(out: Path, name: str, ensemble: Ensemble, settings: Mapping[str, Value], port: int) -> Member:
    """Return one more role, which answers on a port, beside those of an ensemble."""
    common = {"redis_url": ensemble.redis_url, "keys": KEYS, "log_level": "debug", "log_format": "json", **settings}
    return _role(out, name, 0, common, port)


def _role(out: Path, role: str, number: int, common: Mapping[str, Value], port: int = 0) -> Member:
    name = f"{role}-{number}" if number else role
    settings = dict(common)
    if role == "edge":
        # A port of its own for each start would hide what a restarted edge does with packets of old sessions.
        udp = free_port(socket.SOCK_DGRAM)
        settings |= {"udp_port": udp, "udp_public": f"{LOOPBACK}:{udp}"}
    health = free_port()
    settings |= {"metrics_host": LOOPBACK, "metrics_port": health}
    config = out / f"{name}.toml"
    write_settings(settings, config)
    known = {variable(one) for one in Settings.model_fields}
    environment = {key: value for key, value in os.environ.items() if key not in known}
    environment |= {"FLEET_CONFIG": str(config), "PYTHONPATH": str(Path(__file__).parents[2])}
    program = "fleet" if role in ("api", "control") else "tests.chaos.puppet"
    return Member(name, [sys.executable, "-m", program, role], out / f"{name}.log", environment, port, health)


def _broker(out: Path, port: int) -> Member:
    keys, config = out / "keys", out / "mosquitto.conf"
    key_id, _, key = KEYS.partition(":")
    keys.touch(mode=0o600)
    keys.write_text(f"{key_id} {key}\n")
    options = {"listener": f"{port} {LOOPBACK}", "plugin": str(build_plugin()), "plugin_opt_keys_file": str(keys)}
    # Started by root, it would otherwise become user mosquitto, who cannot read our folder.
    config.write_text(shipped_config({"user": "root", **options}))
    command = [find_program("mosquitto"), "-c", str(config)]
    return Member("broker", command, out / "broker.log", os.environ, port)


def _redis(out: Path, port: int, appendfsync: str) -> Member:
    data = out / "redis"
    data.mkdir(exist_ok=True)
    place = ["--bind", LOOPBACK, "--port", str(port), "--dir", str(data)]
    keep = ["--save", "", "--appendonly", "yes", "--appendfsync", appendfsync]
    return Member("redis", [find_program("redis-server"), *place, *keep], out / "redis.log", os.environ, port)


def _steered(url: str) -> dict[str, Value]:
    values = {"base_url": url, "model": "scripted", "api_key": "none"}
    return {f"{model}_{name}": value for model in ("llm", "asr", "tts") for name, value in values.items()}


def _leash() -> list[str]:
    """Return what ends a process with the harness, should that be killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
