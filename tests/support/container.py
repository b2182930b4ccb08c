"""A server in a container, through testcontainers, on machines where a Docker engine answers."""

import functools
import os
import socket
import time
from pathlib import Path

import pytest

from tests.support.ports import LOOPBACK

READY_SECONDS = 240.0
STOP_SECONDS = 10


@functools.cache
def docker_answers() -> bool:
    """Return whether a Docker engine answers; asked once for a test run."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://") and not _accepts(host.removeprefix("unix://")):
        return False
    # Half a second, for every run: who has no engine does not pay it.
    import docker  # type: ignore[import-untyped]  # has no types
    import docker.errors  # type: ignore[import-untyped]

    try:
        client = docker.from_env(timeout=3)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()


@functools.cache
def has_image(name: str) -> bool:
    """Return whether a Docker engine answers that has an image, or can load it."""
    if not docker_answers():
        return False
    import docker
    import docker.errors

    client = docker.from_env()
    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        try:
            client.images.pull(name)
        except docker.errors.APIError:
            return False
    finally:
        client.close()
    return True


def _accepts(path: str) -> bool:
    # The docker library would leave its socket open when nobody listens, which fails whatever test runs then.
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


class ServerContainer:
    """One server in one container, its port bound to a fixed loopback port so that it keeps it over a restart.

    Args:
        image: Name and tag.
        command: Arguments of the image's entry point; empty for the image's own.
        ports: The port inside the container and the one on the loopback address.
        hello: What a client may send first; the server is ready when it answers with anything.
        files: Files on this machine and where the container sees them.
    """

    def __init__(
        self, image: str, command: list[str], ports: tuple[int, int], hello: bytes, files: dict[Path, str] | None = None
    ) -> None:
        inside, self._port = ports
        self._hello = hello
        from testcontainers.core.container import DockerContainer

        self._container = DockerContainer(image)
        self._container.with_bind_ports(inside, self._port)
        if command:
            self._container.with_command(command)
        for here, there in (files or {}).items():
            self._container.with_volume_mapping(here, there, "ro")
        self._made = False

    @property
    def log(self) -> str:
        return b"".join(self._container.get_logs()).decode(errors="replace") if self._made else ""

    def start(self) -> None:
        if self._made:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._made = True
        give_up = time.monotonic() + READY_SECONDS
        while not self._answers():
            if time.monotonic() > give_up:
                pytest.fail(f"the container did not get ready:\n{self.log}", pytrace=False)
            time.sleep(0.05)

    def stop(self) -> None:
        if self._made:
            self._container.get_wrapped_container().stop(timeout=STOP_SECONDS)

    def kill(self) -> None:
        """End the server at once (SIGKILL)."""
        self._container.get_wrapped_container().kill()

    def discard(self) -> None:
        """Remove the container with what it stored."""
        if self._made:
            self._container.stop()
            self._made = False

    def _answers(self) -> bool:
        # Docker's proxy accepts before the server inside does, so that an accepted connection proves nothing.
        try:
            with socket.create_connection((LOOPBACK, self._port), timeout=1) as probe:
                probe.sendall(self._hello)
                return bool(probe.recv(1))
        except OSError:
            return False
