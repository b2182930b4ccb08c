"""A primary, a replica, and three Sentinels, which notice within half a second when the primary was killed."""

from pathlib import Path

import redis

from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess
from tests.support.redis_engines import Engine, EngineProcess, find_engine
from tests.support.until import until

_SERVICE = "fleet"
_CONFIG = """\
port {port}
bind {host}
dir {home}
sentinel monitor {service} {host} {primary} 2
sentinel down-after-milliseconds {service} {patience}
sentinel failover-timeout {service} 1000
"""
_PATIENCE, _NOTICE = 240_000, 500
"""Milliseconds after which a silent primary counts as gone, as long as none was killed and after that."""
_HASTE = ("info-period", 200, "publish-period", 200, "ping-period", 100, "ask-period", 100)
"""Milliseconds of what Sentinels do every second or ten, so that they know each other at once."""


class SentinelSet:
    """Two servers and their Sentinels; knows which server is the primary at the start."""

    def __init__(self, directory: Path, engine: Engine = "redis") -> None:
        self.primary = EngineProcess(engine, directory)
        self.replica = EngineProcess(engine, directory, "--replicaof", LOOPBACK, str(self.primary.port))
        self.ports = [free_port() for _ in range(3)]
        self._sentinels = [self._sentinel(directory, port, engine) for port in self.ports]

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'{LOOPBACK}:{port}' for port in self.ports)}/{_SERVICE}/0"

    def start(self) -> None:
        self.primary.start()
        self.replica.start()
        until(self._acknowledged)
        for sentinel in self._sentinels:
            sentinel.start()
        for port in self.ports:
            with redis.Redis(port=port) as client:
                client.execute_command("SENTINEL", "DEBUG", *_HASTE)
        until(lambda: all(self._complete(port) for port in self.ports))

    def kill_primary(self) -> None:
        """Kill it, and let the Sentinels notice it soon: nothing else makes the servers change places."""
        self.primary.kill()
        self._be_patient(_NOTICE)

    def calm(self) -> None:
        """Let the Sentinels be patient again, once the servers have changed places."""
        self._be_patient(_PATIENCE)

    def discard(self) -> None:
        for server in (*self._sentinels, self.replica, self.primary):
            server.kill()

    def _be_patient(self, ms: int) -> None:
        for port in self.ports:
            with redis.Redis(port=port) as client:
                client.execute_command("SENTINEL", "SET", _SERVICE, "down-after-milliseconds", ms)

    def _complete(self, port: int) -> bool:
        with redis.Redis(port=port, decode_responses=True) as client:
            (state,) = client.sentinel_masters().values()
        return bool(state["num-other-sentinels"] == 2 and state["num-slaves"] == 1)

    def _acknowledged(self) -> bool:
        with redis.Redis(port=self.primary.port) as client:
            client.set("written", "1")
            return bool(client.wait(1, 50))

    def _sentinel(self, directory: Path, port: int, engine: Engine) -> ServerProcess:
        home = directory / f"sentinel-{port}"
        home.mkdir()
        config = home / "sentinel.conf"
        config.write_text(
            _CONFIG.format(
                port=port, host=LOOPBACK, home=home, service=_SERVICE, primary=self.primary.port, patience=_PATIENCE
            )
        )
        return ServerProcess([find_engine(engine), str(config), "--sentinel"], port, home / "log")
