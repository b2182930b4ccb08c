"""Machines of an operator: a fresh Debian under systemd, and another one that has a copy of fleet."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.containers.engine import connect
from tests.containers.terminal import Terminal
from tests.support.documents import ROOT
from tests.support.until import until

DEBIAN = "debian-systemd:12.11"
REPOSITORY = "/srv/fleet.git"
"""Where a machine has the repository, as the address from which a reader clones it."""
_SYSTEM_RESOURCE = 24
_KERNEL = ("fs", "kernel", "net/core", "vm")
_VOLATILE = {"random", "ns_last_pid"}


def address_of(container: Any) -> str:
    container.reload()
    [network] = container.attrs["NetworkSettings"]["Networks"].values()
    return str(network["IPAddress"])


def execute(container: Any, *command: str) -> tuple[int, str]:
    """Run a command in a container; return its exit code and what it wrote."""
    code, output = container.exec_run(list(command))
    return int(code), output.decode(errors="replace")


class Machine:
    """A container as a machine.

    Args:
        container: One that runs.
    """

    def __init__(self, container: Any) -> None:
        self._container = container
        self.name = str(container.name)

    @property
    def address(self) -> str:
        return address_of(self._container)

    def terminal(self, user: str = "root") -> Terminal:
        return Terminal(self.name, user)

    def execute(self, *command: str) -> tuple[int, str]:
        """Run a command as root beside those of the guide; return its exit code and what it wrote."""
        return execute(self._container, *command)

    def ready(self, port: int = 9464) -> bool:
        """Whether the role with this port for metrics says so."""
        url = f"http://127.0.0.1:{port}/readyz"
        return self.execute("/opt/fleet/.venv/bin/fleet", "health", "--url", url)[0] == 0

    def put(self, source: Path, target: str) -> None:
        """Copy a file or folder to a path whose folder is there; root owns it."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(source, Path(target).name, filter=_of_root)
        assert self._container.put_archive(str(Path(target).parent), packed.getvalue())


@contextmanager
def debian(name: str, network: str, host: str, hosts: dict[str, str]) -> Iterator[Machine]:
    """Boot a fresh Debian.

    Args:
        name: Of the container.
        network: Of the engine.
        host: The machine's own name.
        hosts: Names of others and their addresses.
    """
    with ExitStack() as stack:
        stack.enter_context(_kernel_kept())
        engine = connect()
        stack.callback(engine.close)
        # What `--privileged` gives to systemd, without the devices of this machine, and only what the engine has.
        rights = ["--cap-add=ALL", *([] if _may_raise_limits() else ["--cap-drop=SYS_RESOURCE"])]
        unconfined = [f"--security-opt={one}=unconfined" for one in ("seccomp", "apparmor", "systempaths")]
        own = [f"--name={name}", f"--hostname={host}", f"--network={network}"]
        others = [f"--add-host={other}:{address}" for other, address in hosts.items()]
        places = ["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw", "--tmpfs=/run", "--tmpfs=/run/lock"]
        # The library cannot say `systempaths`.
        subprocess.run(
            ["docker", "run", "--detach", *own, *others, *rights, *unconfined, *places, DEBIAN],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        container = engine.containers.get(name)
        stack.callback(container.remove, force=True, v=True)
        machine = Machine(container)
        until(lambda: machine.execute("systemctl", "is-system-running")[1].strip() == "running", 60)
        yield machine


@contextmanager
def network(name: str) -> Iterator[str]:
    """Make a network of the engine."""
    engine = connect()
    made = engine.networks.create(name)
    try:
        yield name
    finally:
        made.remove()
        engine.close()


def make_repository(folder: Path) -> Path:
    """Make a bare repository with what this checkout holds, uncommitted changes included."""
    tree, bare = folder / "tree", folder / "fleet.git"
    tree.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    packed = subprocess.run(
        ["tar", "-c", "--null", "--files-from=-"], cwd=ROOT, input=listed.stdout, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x"], cwd=tree, input=packed.stdout, check=True)
    git(tree, "init", "--quiet", "--initial-branch=main")
    commit(tree, "The checkout")
    git(folder, "clone", "--quiet", "--bare", str(tree), str(bare))
    return bare


def commit(tree: Path, subject: str) -> None:
    git(tree, "add", "--all")
    git(tree, "-c", "user.name=A test", "-c", "user.email=test@example.org", "commit", "--quiet", "-m", subject)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def _may_raise_limits() -> bool:
    """Whether this machine has the right that an engine must have to give it to a container."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [bounds] = [line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")]
    return bool(int(bounds, 16) >> _SYSTEM_RESOURCE & 1)


@contextmanager
def _kernel_kept() -> Iterator[None]:
    """Give this machine's kernel its settings back: a container has the same kernel, and the guide sets some."""
    before = dict(_kernel_settings())
    yield
    for path, value in _kernel_settings():
        if before.get(path, value) != value:
            path.write_text(before[path], encoding="ascii")


def _kernel_settings() -> Iterator[tuple[Path, str]]:
    for part in _KERNEL:
        for path in (Path("/proc/sys") / part).rglob("*"):
            # The others change by themselves.
            if path.is_file() and path.stat().st_mode & 0o600 == 0o600 and not _VOLATILE & set(path.parts):
                try:
                    yield path, path.read_text(encoding="ascii")
                except (OSError, UnicodeError):
                    continue


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
