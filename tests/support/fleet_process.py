"""`fleet up` as a process of its own, the way an operator runs it."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.support.forked import Forked
from tests.support.ports import free_port

START_SECONDS = 240.0
STOP_SECONDS = 240.0


class FleetProcess:
    """One `fleet up` on free ports; its log lines are collected as they come.

    Args:
        directory: For its data.
        patient: Whether it waits longer for Redis than in production (`patient_module`).
        forked: Whether it begins with everything imported (`Forked`), as a test does not prove how the command starts.
        settings: Environment variables.
    """

    def __init__(self, directory: Path, *, patient: bool = False, forked: bool = False, **settings: str) -> None:
        self.http_port, self.mqtt_port, self.udp_port = free_port(), free_port(), free_port(socket.SOCK_DGRAM)
        module = ["tests.support.patient_module", "fleet"] if patient else ["fleet"]
        self.command = [sys.executable, "-m", *module, "up"]
        self._forked, self._patient = forked, patient
        self.lines: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self._news: queue.Queue[None] = queue.Queue()
        outside = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FLEET_", "LLM_", "ASR_", "TTS_", "CLOUD_"))
        }
        self.environment = {
            **outside,
            "FLEET_DATA_DIR": str(directory),
            "FLEET_HTTP_PORT": str(self.http_port),
            "FLEET_MQTT_PORT": str(self.mqtt_port),
            "FLEET_UDP_PORT": str(self.udp_port),
            "CLOUD_HOST": "127.0.0.1",
            "CLOUD_PORT": str(free_port()),
            "FLEET_CONTROL_PORT": "0",
            "FLEET_LOG_FORMAT": "json",
            "FLEET_LOG_PII": "true",
            "FLEET_METRICS_PORT": "none",
            **settings,
        }

    @property
    def ota(self) -> str:
        return f"http://127.0.0.1:{self.http_port}/xiaozhi/ota/"

    @property
    def shown(self) -> str:
        """What it has written to its standard output."""
        self._shown.seek(0)
        return self._shown.read()

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        self._shown = tempfile.NamedTemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as the process
        self._process: Forked | subprocess.Popen[str]
        if self._forked:
            self._process = Forked(["up"], self.environment, stdout=self._shown.name, patient=self._patient)
            told = self._process.written
        else:
            self._process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=self._shown,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            assert self._process.stderr
            told = self._process.stderr
        self._reader = threading.Thread(target=self._read, args=(told,), daemon=True)
        self._reader.start()

    def wait_for(self, message: str, seconds: float = START_SECONDS, after: int = 0) -> dict[str, Any]:
        """Return the first log line with this message, at once or when it comes."""
        deadline = time.monotonic() + seconds
        while True:
            for line in list(self.lines)[after:]:
                if line["message"] == message:
                    return line
            if self._process.poll() is not None and not self._reader.is_alive():
                raise AssertionError(f"fleet ended with {self._process.returncode}: {self.errors} {self.lines[-3:]}")
            try:
                self._news.get(timeout=max(0.01, min(0.5, deadline - time.monotonic())))
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise AssertionError(f"no {message!r} within {seconds} s; last: {self.lines[-5:]}") from None

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Return the exit code, when it comes."""
        code = self._process.wait(seconds)
        self._reader.join(STOP_SECONDS)
        return code

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self.wait()

    def discard(self) -> None:
        if self._process.poll() is None:
            try:
                self.interrupt()
            except subprocess.TimeoutExpired:
                self._process.kill()
                self.wait()
        self._reader.join(STOP_SECONDS)
        self._shown.close()

    def memory(self) -> int:
        """Return the resident memory of the process and its children, in MB."""
        pids = [self.pid, *children(self.pid)]
        return sum(_resident(pid) for pid in pids) // 1024

    def _read(self, told: IO[str]) -> None:
        with told:
            for text in told:
                try:
                    self.lines.append(json.loads(text))
                except ValueError:
                    self.errors.append(text.rstrip())
                self._news.put(None)


def children(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


@contextmanager
def fleet_up(
    directory: Path, *, patient: bool = False, forked: bool = False, **settings: str
) -> Iterator[FleetProcess]:
    """Run `fleet up` until the block ends; the block begins when it is up."""
    process = FleetProcess(directory, patient=patient, forked=forked, **settings)
    process.start()
    try:
        process.wait_for("fleet is up")
        yield process
    finally:
        process.discard()
