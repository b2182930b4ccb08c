"""Processes that run out of file descriptors say so by name, and serve again when some are free."""

import resource
import socket
import time
from pathlib import Path

import pytest

from fleet.adapters.net.descriptors import LOG_SECONDS
from tests.support.ports import LOOPBACK, free_port
from tests.support.role_process import started
from tests.support.role_site import role_site
from tests.support.scraped import ask
from tests.support.until import until

LIMIT = 100
SHORT = "file descriptors ran out"
PORTS = {"api": "FLEET_HTTP_PORT", "gateway": "CLOUD_PORT", "front": "FLEET_MQTT_PORT"}


@pytest.mark.parametrize("role", PORTS)
def test_a_role_without_file_descriptors_says_so_and_serves_again(tmp_path: Path, role: str) -> None:
    with role_site(tmp_path) as site:
        port, health = free_port(), free_port()
        process = site.start(
            role,
            **{PORTS[role]: str(port), "FLEET_METRICS_PORT": str(health), "FLEET_METRICS_HOST": LOOPBACK},
            FLEET_HTTP_HOST=LOOPBACK,
            CLOUD_HOST=LOOPBACK,
            FLEET_MQTT_HOST=LOOPBACK,
            CLOUD_LOG_LEVEL="debug",
        )
        until(lambda: _answers(health))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
        begun = time.monotonic()
        strangers = [socket.create_connection((LOOPBACK, port), timeout=240) for _ in range(2 * LIMIT)]
        started(process, SHORT)
        line = next(line for line in process.lines if line["message"] == SHORT)
        assert line["level"] == "error"
        assert line["limit"] == LIMIT
        assert "ulimit -n" in line["advice"]
        for stranger in strangers:
            stranger.close()
        started(process, "file descriptors are free again")
        until(lambda: _answers(health))
        with socket.create_connection((LOOPBACK, port), timeout=240) as visitor:
            visitor.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            visitor.settimeout(240)
            visitor.recv(1)  # an answer, or an end in order: nobody refuses it
        assert process.count(SHORT) <= 1 + (time.monotonic() - begun) / LOG_SECONDS


def _answers(port: int) -> bool:
    try:
        return ask(port, "/readyz")[0] == 200
    except OSError:
        return False
