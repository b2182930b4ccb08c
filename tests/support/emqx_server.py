"""A real EMQX in a container, with the configuration that is shipped."""

import time
from pathlib import Path

import httpx2
import pytest
from testcontainers.core.container import DockerContainer

from tests.support.emqx_requests import LOOPBACK, TOKEN
from tests.support.ports import free_port

IMAGE = "emqx/emqx:5.8.6"
SHIPPED = Path(__file__).parents[2] / "deploy" / "emqx"
API_KEY = "fleet:a-secret-of-emqx-in-tests"
READY_SECONDS = 90.0

_HERE = "host.docker.internal"
_HOME = "/opt/emqx/etc"


class EmqxServer:
    """One node.

    Args:
        directory: For the file with the API key.
        login_url: Path and port of the api on this machine, which must listen on all addresses: `8000/internal/…`.
    """

    def __init__(self, directory: Path, login_url: str) -> None:
        self.port, self._api_port = free_port(), free_port()
        key = directory / "fleet_api_key"
        key.write_text(f"{API_KEY}:administrator\n")
        key.chmod(0o644)
        container = DockerContainer(IMAGE)
        for inside, outside in ((1883, self.port), (18083, self._api_port)):
            container.with_bind_ports(inside, outside)
        for here in (SHIPPED / "emqx.conf", SHIPPED / "acl.conf", key):
            container.with_volume_mapping(here, f"{_HOME}/{here.name}", "ro")
        # Values are HOCON: without the quotes `//` would begin a comment.
        for name, value in {
            "EMQX_NODE__NAME": "emqx@127.0.0.1",
            "EMQX_NODE__COOKIE": "cookie-of-a-test",
            "EMQX_DASHBOARD__DEFAULT_PASSWORD": "password-of-a-test-1",
            "EMQX_AUTHENTICATION__1__URL": f'"http://{_HERE}:{login_url}"',
            "EMQX_AUTHENTICATION__1__HEADERS": (
                f'{{"content-type":"application/json","authorization":"Bearer {TOKEN}"}}'
            ),
        }.items():
            container.with_env(name, value)
        container.with_kwargs(extra_hosts={_HERE: "host-gateway"})
        self._container = container

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self._api_port}"

    def start(self) -> None:
        self._container.start()
        give_up = time.monotonic() + READY_SECONDS
        while not self._answers():
            if time.monotonic() > give_up:
                log = b"".join(self._container.get_logs()).decode(errors="replace")
                pytest.fail(f"EMQX did not get ready:\n{log}", pytrace=False)
            time.sleep(0.2)

    def discard(self) -> None:
        self._container.stop()

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.api_url}/status", timeout=2, trust_env=False).status_code == 200
        except httpx2.HTTPError:
            return False
