"""Prints the part of requirements.lock that a layer of the image needs.

    python deploy/requirements_of.py             what the wheel alone installs: all that a server and the demo need
    python deploy/requirements_of.py server      what every role needs
    python deploy/requirements_of.py EXTRA…      what other extras need beyond that
    python deploy/requirements_of.py --packages NAME…
    python deploy/requirements_of.py --deal FIRST SECOND LOCK…   writes the packages of locks to two files, in turn

The lock names for each package what wants it; that is followed from the packages that pyproject.toml names.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_WANTS = re.compile(r"^ {4}# +(?:via )?(\S+)", re.MULTILINE)


def canonical(requirement: str) -> str:
    """Return the package's name in the form in which names are compared."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    if name is None:
        raise SystemExit(f"{requirement!r} names no package")
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def read_lock(text: str) -> list[tuple[str, set[str], str]]:
    """Return of each entry the package's name, the names of those that want it, and the entry's text."""
    entries = [entry for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if entry.strip() and entry[0] != "#"]
    return [(canonical(entry), {canonical(name) for name in _WANTS.findall(entry)}, entry) for entry in entries]


def choose(lock: str, packages: list[str], beyond: list[str] | None = None) -> str:
    """Return the entries that packages lead to, in the lock's order, without those that `beyond` leads to.

    Raises:
        SystemExit: One is not in the lock.
    """
    entries = read_lock(lock)
    wanted, there = follow(entries, packages), follow(entries, beyond or [])
    return "".join(entry for name, _, entry in entries if name in wanted - there)


def follow(entries: list[tuple[str, set[str], str]], packages: list[str]) -> set[str]:
    """Return the names of packages and of all that they need.

    Raises:
        SystemExit: One is not in the lock.
    """
    wanted = {canonical(one) for one in packages}
    if missing := wanted - {name for name, _, _ in entries}:
        raise SystemExit(f"not in requirements.lock: {', '.join(sorted(missing))}")
    while more := {name for name, wanting, _ in entries if wanting & wanted} - wanted:
        wanted |= more
    return wanted


def deal(locks: list[str]) -> tuple[str, str]:
    """Return two locks that share the packages of all, each package in one of them."""
    entries = list({entry.splitlines()[0]: entry for lock in locks for _, _, entry in read_lock(lock)}.values())
    return "".join(entries[::2]), "".join(entries[1::2])


def main(arguments: list[str]) -> str:
    """Return what the arguments ask for."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if arguments[:1] == ["--packages"]:
        return choose(lock, arguments[1:])
    if arguments[:1] == ["--deal"]:
        shares = deal([Path(lock).read_text(encoding="utf-8") for lock in arguments[3:]])
        for path, share in zip(arguments[1:3], shares, strict=True):
            Path(path).write_text(share, encoding="utf-8")
        return ""
    optional = project["optional-dependencies"]
    if unknown := set(arguments) - set(optional):
        raise SystemExit(f"no such extra: {', '.join(sorted(unknown))}")
    if not arguments:
        return choose(lock, [package for extra in parts(project) for package in optional[extra]])
    wanted = [one for extra in arguments for one in optional[extra]]
    return choose(lock, wanted, beyond=None if "server" in arguments else optional["server"])


def parts(project: dict[str, Any]) -> list[str]:
    """Return the extras that the wheel alone installs."""
    [itself] = project["dependencies"]
    return re.findall(r"\w+", itself.partition("[")[2])


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
