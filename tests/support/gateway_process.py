"""`fleet gateway` as a process of its own, the way an operator runs it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.forked import Forked
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts

START_SECONDS = 240.0
STOP_SECONDS = 240.0
_OWN = ("FLEET_", "CLOUD_", "LLM_", "ASR_", "TTS_", "VISION_", "MCP_", "CLIENT_")
_PROBE_SECONDS = 0.05

TOOL_SECONDS, SESSION_SECONDS = 2, 5
MOST_CONNECTIONS, MOST_TOOLS = 3, 2
"""Limits of gateways with `hasty_settings` and `unusual_settings`."""


class GatewayProcess:
    """One gateway on a free port; what it writes is collected.

    Args:
        directory: Its home: without settings everything that it keeps is below it.
        patient: See `Forked`.
        settings: Environment variables; nothing else of fleet's is taken from this process.
    """

    def __init__(self, directory: Path, *, patient: bool = True, **settings: str) -> None:
        self._patient = patient
        self.port = free_port()
        self.written: list[str] = []
        outside = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        # Where its Redis is, if it has one of its own. HOME would come too late: the default was made before the fork.
        self._settings = {"CLOUD_PORT": str(self.port), "FLEET_DATA_DIR": str(directory), **settings}
        self._environment = outside | {"HOME": str(directory)} | self._settings
        self._process: Forked | None = None

    @property
    def url(self) -> str:
        return f"ws://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and return when it accepts connections; fail the test when it does not."""
        self._process = Forked(["gateway"], self._environment, stdout=True, patient=self._patient)
        threading.Thread(target=self._read, daemon=True).start()
        give_up = time.monotonic() + START_SECONDS
        while not accepts(self.port):
            if not self.alive or time.monotonic() > give_up:
                self.discard()
                pytest.fail(f"the gateway did not get ready with {self._settings}: {self.written[-8:]}", pytrace=False)
            time.sleep(_PROBE_SECONDS)

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        assert self._process
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def discard(self) -> None:
        if self.alive:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()

    def _read(self) -> None:
        assert self._process
        with self._process.written as lines:
            for line in lines:
                self.written.append(line.rstrip())


@contextmanager
def gateway_process(directory: Path, *, patient: bool = True, **settings: str) -> Iterator[GatewayProcess]:
    """Run a gateway until the end of the block; it accepts connections when the block begins."""
    process = GatewayProcess(directory, patient=patient, **settings)
    try:
        process.start()
        yield process
    finally:
        process.discard()


def hasty_settings(llm_url: str, redis_url: str, silent_url: str) -> dict[str, str]:
    """Return limits of tools and sessions in time so short that tests meet them.

    The services behind the weather never answer.
    """
    times = {
        "CLIENT_TOOL_TIMEOUT": TOOL_SECONDS,
        "CLOUD_SESSION_TIMEOUT": SESSION_SECONDS,
        "FLEET_TOOL_SECONDS": TOOL_SECONDS,
    }
    places = {
        "FLEET_GEOCODING_URL": silent_url,
        "FLEET_REDIS_URL": redis_url,
        "FLEET_WEATHER_URL": silent_url,
        "LLM_BASE_URL": llm_url,
    }
    return {**{name: str(value) for name, value in times.items()}, **places, "LLM_ENABLE_CONTEXT": "true"}


def unusual_settings(llm_url: str, redis_url: str) -> dict[str, str]:
    """Return limits in number so small that tests meet them, and everything else set to something unusual.

    The limits in time are the usual ones, which a busy machine does not pass.
    """
    limits = {
        "CLIENT_TOOLS_MAX_COUNT": MOST_TOOLS,
        "CLOUD_MAX_CONNECTIONS": MOST_CONNECTIONS,
        "LLM_MAX_TOKENS": 512,
        "LLM_TEMPERATURE": 0.25,
    }
    words = {
        "CLOUD_HOST": "127.0.0.1",
        "CLOUD_LOG_LEVEL": "DEBUG",
        "CLOUD_LOG_FORMAT": "json",
        "FLEET_REDIS_URL": redis_url,
        "LLM_API_KEY": "sk-black-box",
        "LLM_BASE_URL": llm_url,
        "LLM_ENABLE_CONTEXT": "true",
        "LLM_MODEL": "a-model-of-the-test",
    }
    return {**{name: str(value) for name, value in limits.items()}, **words}
