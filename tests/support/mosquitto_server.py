"""A real Mosquitto for tests, with or without fleet's plugin.

With the plugin it is always the `mosquitto` of this machine, as the plugin is built against its headers, and it runs
with the configuration that is shipped. Without, it runs in a container where Docker runs.
"""

import signal
from pathlib import Path

from fleet.wire.identity import CredentialKeys
from tests.support.container import ServerContainer, docker_answers
from tests.support.plugin_build import SOURCES, build_plugin
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, find_program

IMAGE = "eclipse-mosquitto:2"
_PORT_INSIDE = 1883
_CONNECT = bytes.fromhex("100c 0004 4d515454 04 02 003c 0000")
"""MQTT 3.1.1, clean session, no client id."""

_OPEN_CONFIG = """\
allow_anonymous true
upgrade_outgoing_qos true
max_queued_messages 10000
persistence false
log_dest stderr
"""


def shipped_config(changes: dict[str, str]) -> str:
    """Return the shipped configuration with the values of some of its options changed; unknown options are added."""
    left = dict(changes)
    lines = []
    for line in (SOURCES / "mosquitto.conf").read_text().splitlines():
        option = line.partition(" ")[0]
        lines.append(f"{option} {left.pop(option)}" if option in left else line)
    # The added ones go first: an option after `listener` might become one of that listener.
    return "\n".join([*(f"{option} {value}" for option, value in left.items()), *lines, ""])


class MosquittoServer:
    """One broker on its own port.

    Args:
        directory: For its configuration, keys file and log.
        keys: Who may connect, with the plugin. None: a broker without plugin that lets everybody in.
        changes: Options of the shipped configuration that this test needs otherwise (with the plugin only).
        environment: Variables for the process besides ours (with the plugin only).
    """

    def __init__(
        self,
        directory: Path,
        keys: CredentialKeys | None = None,
        changes: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.host = LOOPBACK
        self.port = free_port()
        self.directory = directory
        self._config = directory / "mosquitto.conf"
        self._keys_file = directory / "keys"
        self._revoked_file = directory / "revoked"
        self._environment = environment
        self._keys = keys
        if keys is None and docker_answers():
            self._engine: ServerContainer | ServerProcess = self._in_container()
        else:
            self._engine = self._as_process(changes or {})

    @property
    def url(self) -> str:
        return f"mqtt://{self.host}:{self.port}"

    @property
    def keys(self) -> CredentialKeys:
        assert self._keys is not None, "a broker without plugin has no keys"
        return self._keys

    @property
    def log(self) -> str:
        return self._engine.log

    @property
    def process(self) -> ServerProcess:
        assert isinstance(self._engine, ServerProcess), "this broker runs in a container"
        return self._engine

    def start(self) -> None:
        self._engine.start()

    def stop(self) -> None:
        """End it in order; `start` brings it back on the same port."""
        self._engine.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._engine.kill()

    def discard(self) -> None:
        """End it for good."""
        self._engine.discard()

    def write_keys(self, text: str) -> None:
        """Replace the keys file; the broker sees it within seconds, or at `reload`."""
        self._keys_file.write_text(text)
        self._keys_file.chmod(0o600)

    def write_revoked(self, *macs: str) -> None:
        """Replace the list of revoked devices."""
        draft = self._revoked_file.with_suffix(".new")
        draft.write_text("".join(f"{mac}\n" for mac in macs))
        draft.replace(self._revoked_file)

    def reload(self) -> None:
        """Make the broker read its keys again (SIGHUP). Returns at once."""
        self.process.signal(signal.SIGHUP)

    def _as_process(self, changes: dict[str, str]) -> ServerProcess:
        program = find_program("mosquitto", "mosquitto")
        # Started by root, it would otherwise become user mosquitto, who cannot read the test's directory.
        account = {"user": "root"}
        listener = {"listener": f"{self.port} {self.host}"}
        if self._keys is None:
            options = account | listener
            self._config.write_text(_OPEN_CONFIG + "".join(f"{name} {value}\n" for name, value in options.items()))
        else:
            self.write_keys(self._keys.as_file())
            plugin = {"plugin": str(build_plugin()), "plugin_opt_keys_file": str(self._keys_file)}
            self._config.write_text(shipped_config(account | listener | plugin | changes))
        command = [program, "-c", str(self._config)]
        return ServerProcess(command, self.port, self.directory / "mosquitto.log", self._environment)

    def _in_container(self) -> ServerContainer:
        self._config.write_text(f"{_OPEN_CONFIG}listener {_PORT_INSIDE}\n")
        files = {self._config: "/mosquitto/config/mosquitto.conf"}
        return ServerContainer(IMAGE, [], (_PORT_INSIDE, self.port), _CONNECT, files)
