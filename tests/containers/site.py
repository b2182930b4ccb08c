"""fleet's compose file on a Docker engine: a project with ports, folders and settings of its own."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.containers.engine import connect
from tests.support.certificates import Pki
from tests.support.compose import DEPLOY
from tests.support.ports import LOOPBACK, free_port

SERVICES = ("mosquitto", "redis", "worker", "edge", "gateway", "api", "control")
ROLES = ("worker", "edge", "gateway", "api", "control")
KEYS = "k1:a-key-for-container-tests-only"
PASSWORD = "abc123"
LIMIT_SECONDS = 300
MOSQUITTO = 1883
"""The user of the broker's image."""
MODEL_URL = "http://model:8010/v1"
"""The demo model, which runs beside the site."""
_BESIDE = """\
services:
  model:
    image: ${{FLEET_IMAGE:-fleet:0.2.0}}
    command: [demo-llm, --host, 0.0.0.0]
    networks: [outside]
  mosquitto:
    ulimits: {{nofile: {{soft: {files}, hard: {files}}}}}
"""
_FILES = 65536
"""What compose.yaml gives Mosquitto; an engine that may not raise limits has less to give."""
_SPEECH = {"ASR_MODEL": "m", "ASR_API_KEY": "none", "TTS_MODEL": "m", "TTS_API_KEY": "none"}


class Site:
    """One compose project; `up` starts it.

    Args:
        folder: For its settings and certificates.
        name: Of the project.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.engine = connect()
        self.pki = Pki(_made(folder / "pki"))
        self._folder = folder
        self._tls = _made(folder / "tls")
        for source, target in ((self.pki.cert, "fullchain.pem"), (self.pki.key, "privkey.pem")):
            file = self._tls / target
            file.write_bytes(source.read_bytes())
            file.chmod(0o600)
            os.chown(file, MOSQUITTO, MOSQUITTO)
        self.http, self.mqtt, self.mqtts, self.gateway, self.control = (free_port() for _ in range(5))
        self.udp = free_port()
        self.variables = {
            "FLEET_KEYS": KEYS,
            "REDIS_PASSWORD": PASSWORD,
            "FLEET_PUBLIC_HOST": LOOPBACK,
            "FLEET_LANGUAGE": "en",
            "FLEET_LOG_LEVEL": "debug",
            "FLEET_LOG_PII": "true",
            "FLEET_ACTIVATION": "open",
            "HTTP_PORT": str(self.http),
            "MQTT_PORT": str(self.mqtt),
            "MQTTS_PORT": str(self.mqtts),
            "UDP_PORT": str(self.udp),
            "GATEWAY_PORT": str(self.gateway),
            "CONTROL_PORT": str(self.control),
            "TLS_DIR": str(self._tls),
            "MOSQUITTO_TLS_DIR": "/etc/fleet/tls",
            **{f"{kind}_DIR": str(_made(folder / kind.lower())) for kind in ("TOOLS", "SERIALS", "FIRMWARE")},
        }

    @property
    def ota(self) -> str:
        return f"http://{LOOPBACK}:{self.http}/xiaozhi/ota/"

    @property
    def gateway_url(self) -> str:
        return f"ws://{LOOPBACK}:{self.gateway}"

    @property
    def control_url(self) -> str:
        return f"https://{LOOPBACK}:{self.control}"

    @property
    def host(self) -> str:
        return host_address(self.engine)

    def use_models(self, model_url: str, speech_url: str = "") -> None:
        """Name the models; without `speech_url` the edge recognises and speaks by itself."""
        self.variables |= {"LLM_BASE_URL": model_url, "LLM_MODEL": "fleet-demo", "LLM_API_KEY": "none"}
        for name in ("ASR_BASE_URL", "TTS_BASE_URL", *_SPEECH):
            self.variables.pop(name, None)
        if speech_url:
            self.variables |= {"ASR_BASE_URL": speech_url, "TTS_BASE_URL": speech_url, **_SPEECH}

    def compose(self, *arguments: str, file: Path = DEPLOY / "compose.yaml") -> str:
        """Run Compose on the project; fail the test when it fails; return what it wrote to standard output."""
        settings = self._folder / "variables"
        beside = self._folder / "beside.yaml"
        beside.write_text(_BESIDE.format(files=min(_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
        settings.write_text("".join(f"{name}={value}\n" for name, value in self.variables.items()))
        program = str(Path(sys.executable).with_name("docker-compose"))
        files = ["-f", str(file), "-f", str(beside), "--env-file", str(settings)]
        names = ("DOCKER_HOST", "PATH")
        environment = {"HOME": str(self._folder), **{one: os.environ[one] for one in names if one in os.environ}}
        done = subprocess.run(
            [program, "-p", self.name, *files, *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
            env=environment,
        )
        if done.returncode != 0:
            pytest.fail(f"{' '.join(arguments)}: {done.stderr[-3000:]}{self.complaints()}", pytrace=False)
        return done.stdout

    def up(self, *arguments: str, file: Path = DEPLOY / "compose.yaml") -> None:
        """Start what does not run as the settings say, and wait until it is healthy."""
        self.compose("up", "-d", "--no-build", "--pull", "never", "--wait", *arguments, file=file)

    def down(self, *arguments: str) -> None:
        self.compose("--profile", "*", "down", "--timeout", "20", *arguments)

    def container(self, service: str, number: int = 1) -> Any:
        """Return a container of the project, stopped ones included, as the engine describes it now."""
        return self.engine.containers.get(f"{self.name}-{service}-{number}")

    def containers(self) -> list[Any]:
        label = f"com.docker.compose.project={self.name}"
        return list(self.engine.containers.list(all=True, filters={"label": label}))

    def execute(self, service: str, *command: str, user: str = "") -> tuple[int, str]:
        """Run a command in a service's first container; return its exit code and what it wrote."""
        code, output = self.container(service).exec_run(list(command), user=user)
        return int(code), output.decode(errors="replace")

    def complaints(self) -> str:
        """Return the last lines of every container that is not healthy."""
        found = []
        for one in self.containers():
            state = one.attrs["State"]
            if state.get("Health", {}).get("Status", "healthy") != "healthy" or not state["Running"]:
                found.append(f"\n{one.name}: {state}\n{one.logs(tail=30).decode(errors='replace')}")
        return "".join(found)


def host_address(engine: Any) -> str:
    """Return the address of this machine that containers reach."""
    [network] = engine.networks.list(names=["^bridge$"])
    network.reload()
    [config] = [one for one in network.attrs["IPAM"]["Config"] if "." in one["Subnet"]]
    return str(config.get("Gateway") or next(ip_network(config["Subnet"]).hosts()))


def address(container: Any, network: str = "inside") -> str:
    """Return a running container's address in one of the project's networks."""
    container.reload()
    networks = container.attrs["NetworkSettings"]["Networks"]
    return next(str(one["IPAddress"]) for name, one in networks.items() if name.endswith(f"_{network}"))


@contextmanager
def site(folder: Path, name: str) -> Iterator[Site]:
    """Make a project; whatever it started ends with the block, its volumes too."""
    made = Site(folder, name)
    made.use_models(MODEL_URL)
    try:
        made.down("--volumes")
        yield made
    finally:
        made.down("--volumes")
        made.engine.close()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
