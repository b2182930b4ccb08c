"""The quick start and the production guide, typed word by word into a fresh Debian under systemd."""

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from tests.containers.figures import note
from tests.containers.machine import REPOSITORY, Machine, commit, debian, git, make_repository, network
from tests.containers.terminal import Terminal
from tests.support.certificates import Pki
from tests.support.followed_guides import (
    BROKER,
    CHECK,
    CONNECT,
    EXAMINE,
    INSTALL,
    KEEP_RUNNING,
    KEY,
    OWN_MODELS,
    PRODUCTION,
    QUICK_START,
    REDIS,
    ROLES,
    SETTINGS,
    START,
)
from tests.support.gateway_client import gateway_client
from tests.support.guide import Guide, Step
from tests.support.until import until

READER = "reader"
MAC = "02:00:00:00:00:01"
"""Of `fleet sim`, which stands in for the real device of section 3."""
SITE = "voice.example.org"
LLM = "llm.example.org"
URL = f"file://{REPOSITORY}"
NEEDED = "apt update && apt install git python3-venv"
METRICS_PORTS = {
    "fleet@worker": 9464,
    "fleet@worker2": 9465,
    "fleet@edge": 9466,
    "fleet@gateway": 9467,
    "fleet@api": 9468,
}
RESTARTS = {
    "fleet@worker": "end of speech",
    "fleet@worker2": "end of speech",
    "fleet@api": "end of speech",
    "fleet@gateway": "end of speech",
    "fleet@edge": "tts start",
}
"""When a role is restarted, by what the device shows then: of two workers one has the turn, and the only edge talks."""
SIM = 'fleet sim --ota {} --text "What time is it?"'
PROSE = {
    "once: everything into .venv, at the versions of the lock",
    "the address of this machine, as devices reach it",
    "how far it came, and where it stopped",
}
"""Comments that explain; all others promise what a command shows."""
CA = "/usr/local/share/ca-certificates/authority-of-the-test.crt"


@pytest.fixture(scope="module")
def inside() -> Iterator[str]:
    with network("guide-test") as name:
        yield name


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def outside(inside: str, repository: Path) -> Iterator[Machine]:
    """Another machine with a copy of fleet; it serves the demo model as the reader's chat model."""
    with debian("guide-outside", inside, "outside", {}) as machine:
        machine.put(repository, REPOSITORY)
        with machine.terminal() as root:
            root.run(NEEDED)
            root.run(f"git clone {URL} fleet && fleet/scripts/setup")
            root.run("systemd-run --unit=model fleet/.venv/bin/fleet demo-llm --host 0.0.0.0")
        yield machine


def follow(terminal: Terminal, steps: Sequence[Step]) -> str:
    """Type the steps, and compare what each shows with what the guide promises; return what the last one showed."""
    shown = ""
    for step in steps:
        shown = terminal.run(step.typed)
        if step.comment and step.comment not in PROSE:
            assert step.comment in shown, f"{step.typed}\n{shown}"
    return shown


def assert_answered(shown: str) -> None:
    """A simulated device shows this at its end, as the quick start prints it."""
    assert re.search(r"^turn 0: answered; heard 'What time is it\?', answered '.+'$", shown, re.MULTILINE), shown
    assert shown.rstrip().endswith("\nok"), shown


def test_the_quick_start(inside: str, outside: Machine, repository: Path) -> None:
    values = {
        "https://api.example.com/v1": f"http://{LLM}:8010/v1",
        "some-model": "fleet-demo",
        "LLM_API_KEY=…": "LLM_API_KEY=none",
        "24:0a:c4:12:34:56": MAC,
        "REPOSITORY": URL,
    }
    guide = Guide(QUICK_START, values)
    with debian("guide-quick-start", inside, "machine", {LLM: outside.address}) as machine, machine.terminal() as root:
        values["192.168.1.20"] = machine.address
        machine.put(repository, REPOSITORY)
        # What the guide says that one needs, and the clone that its reader has.
        root.run(NEEDED)
        root.run(f"useradd --create-home --shell /bin/bash {READER}")
        root.run(f"git clone {URL} /home/{READER}/fleet && chown -R {READER}: /home/{READER}/fleet")
        by_hand(guide, machine)
        as_a_service(guide, machine, root)
        update(guide, machine, root, repository)
        uninstall(guide, machine, root)
    assert not guide.left


def by_hand(guide: Guide, machine: Machine) -> None:
    """Sections 1 to 5, as somebody without rights."""
    with machine.terminal(READER) as first, machine.terminal(READER) as second:
        for terminal in (first, second):
            terminal.run("cd fleet")
        *setup, start = guide.block(START)
        follow(first, setup)
        first.type(start.typed)
        first.wait_for("fleet is up")
        assert_answered(follow(second, guide.block(CHECK)))
        listing, examining = guide.block(CONNECT)
        assert MAC in follow(second, [listing])
        follow(second, [examining])
        [own] = guide.block(OWN_MODELS)
        first.interrupt()
        first.type(own.typed)
        first.wait_for("fleet is up")
        assert_answered(second.run(f".venv/bin/{SIM.format(ota_of(machine))}"))
        first.interrupt()


def ota_of(machine: Machine) -> str:
    return f"http://{machine.address}:8000/xiaozhi/ota/"


def as_a_service(guide: Guide, machine: Machine, root: Terminal) -> None:
    """Section 6, with the keys and devices of what was started by hand."""
    follow(root, guide.block(KEEP_RUNNING))
    until(lambda: machine.ready(), 120)
    root.run("systemctl stop fleet@up")
    root.run(f"cp -a /home/{READER}/.local/share/fleet/. /var/lib/fleet/")
    root.run("chown -R fleet: /var/lib/fleet")
    root.run("systemctl start fleet@up")
    until(lambda: machine.ready(), 120)
    command = "/opt/fleet/.venv/bin/fleet devices list"
    assert MAC in root.run(f"runuser -u fleet -- env FLEET_DATA_DIR=/var/lib/fleet {command}")
    assert_answered(root.run(f"/opt/fleet/.venv/bin/{SIM.format(ota_of(machine))}"))
    assert "fleet is up" in root.run("journalctl -u fleet@up -o cat --no-pager")


def update(guide: Guide, machine: Machine, root: Terminal, repository: Path) -> None:
    tree = repository.parent / "tree"
    (tree / "NEWS").write_text("A later version.\n", encoding="utf-8")
    commit(tree, "A later version")
    git(tree, "push", "--quiet", str(repository), "main")
    machine.put(repository, REPOSITORY)
    before = root.run("systemctl show -P MainPID fleet@up")
    follow(root, guide.block(KEEP_RUNNING))
    until(lambda: machine.ready(), 120)
    assert machine.execute("cat", "/opt/fleet/NEWS") == (0, "A later version.\n")
    assert root.run("systemctl show -P MainPID fleet@up") != before


def uninstall(guide: Guide, machine: Machine, root: Terminal) -> None:
    follow(root, guide.block(KEEP_RUNNING))
    left = root.run("find / -xdev -iname '*fleet*' -not -path '/proc/*' -not -path '/home/*' -not -path '/srv/*'")
    assert left == ""
    assert "fleet" not in root.run("cat /etc/passwd /etc/group")
    assert root.run("systemctl list-units --all --no-legend 'fleet*'") == ""
    assert machine.execute("pgrep", "-f", "fleet")[0] == 1


async def test_the_production_guide(inside: str, outside: Machine, repository: Path, tmp_path: Path) -> None:
    values = {
        "10.0.0.5": "127.0.0.1",
        "10.0.0.6": "127.0.0.1",
        "REPOSITORY": URL,
        "https://llm.example.org/v1": f"http://{LLM}:8010/v1",
        "some-model": "fleet-demo",
        " NAME": " a-program",
    }
    guide = Guide(PRODUCTION, values)
    with debian("guide-production", inside, SITE, {LLM: outside.address}) as machine, machine.terminal() as root:
        values["203.0.113.9"] = machine.address
        machine.put(repository, REPOSITORY)
        follow(root, guide.block(INSTALL))
        follow(root, guide.block(KEY))
        redis(guide, root, values)
        certify(machine, root, outside, Pki(tmp_path, SITE))
        follow(root, guide.block(BROKER))
        for _ in range(2):
            follow(root, guide.block(SETTINGS))
        for _ in range(3):
            follow(root, guide.block(ROLES))
        token = follow(root, guide.block(ROLES)).strip()
        for port in METRICS_PORTS.values():
            until(lambda port=port: machine.ready(port), 120)
        follow(root, guide.block(EXAMINE))
        await is_let_in(machine, token)
        with outside.terminal() as device:
            device.run(f'echo "{machine.address} {SITE}" >> /etc/hosts')
            device.run("PATH=$PWD/fleet/.venv/bin:$PATH")
            examining, talking = guide.block(EXAMINE)
            assert "0 problems" in follow(device, [examining])
            assert_answered(follow(device, [talking]))
            for unit, moment in RESTARTS.items():
                restart(root, device, talking, unit, moment)
                until(lambda unit=unit: machine.ready(METRICS_PORTS[unit]), 120)
    assert not guide.left


async def is_let_in(machine: Machine, token: str) -> None:
    """A program with the token is answered by the gateway, one without is not."""
    url = f"ws://{machine.address}:9400"
    async with gateway_client(url, additional_headers={"Authorization": f"Bearer {token}"}) as client:
        assert (await client.turn("What time is it?")).content
    with pytest.raises(InvalidStatus):
        async with gateway_client(url):
            pass


def restart(root: Terminal, device: Terminal, talking: Step, unit: str, moment: str) -> None:
    """Restart a role in the middle of a turn, which is answered nevertheless; the next one is, too."""
    device.type(talking.typed)
    device.wait_for(moment)
    began = time.monotonic()
    root.run(f"systemctl restart {unit}")
    note(f"`systemctl restart {unit}` while a device talks", f"{time.monotonic() - began:.1f} s")
    assert_answered(device.shown())


def redis(guide: Guide, root: Terminal, values: dict[str, str]) -> None:
    steps = guide.block(REDIS)
    showing = next(number for number, step in enumerate(steps) if 'echo "$password"' in step.typed)
    values["PASSWORD"] = follow(root, steps[: showing + 1]).strip()
    follow(root, steps[showing + 1 :])


def certify(machine: Machine, root: Terminal, outside: Machine, pki: Pki) -> None:
    """Put a certificate in place, of an authority that takes the place of a public one on both machines."""
    root.run("install -d -m 750 -g fleet /etc/fleet/tls")
    for source, target in ((pki.cert, "/etc/fleet/tls/fullchain.pem"), (pki.key, "/etc/fleet/tls/privkey.pem")):
        machine.put(source, target)
        root.run(f"chgrp fleet {target} && chmod 640 {target}")
    pki.ca.chmod(0o644)
    for each in (machine, outside):
        each.put(pki.ca, CA)
        assert each.execute("update-ca-certificates")[0] == 0
