"""The compose file on an engine: healthy, closed, within its limits, spoken to through its ports, hit, and kept."""

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from fleet.wire.identity import CredentialKeys
from fleet.workbench.sim.bootstrap.request import ask
from fleet.workbench.sim.profiles.profile import find_profile
from tests.chaos.plan import Fault, How, Target
from tests.chaos.report import describe
from tests.chaos.run import Options, run
from tests.containers.figures import note, report
from tests.containers.members import containers
from tests.containers.site import KEYS, ROLES, SERVICES, Site, address, site
from tests.deploy.test_image import connect_code
from tests.support.gateway_client import gateway_client
from tests.support.ports import free_port
from tests.support.until import until

MAC = "02:c4:05:01:00:01"
USERS = {"mosquitto": "1883", "redis": "999"} | dict.fromkeys(ROLES, "10001")
AUTHORITY = "/var/lib/fleet-control/control-tls/ca.pem"
"""Of the certificate that control made itself."""
REVOKED = "02:c4:05:01:00:02"
MB = 1024 * 1024
FAULTS: tuple[tuple[Target, int, How, float], ...] = (
    ("worker", 0, "kill", 1.0),
    ("broker", 0, "kill", 1.0),
    ("worker", 1, "restart", 1.0),
    ("redis", 0, "kill", 1.0),
    ("edge", 0, "kill", 1.0),
    ("api", 0, "kill", 1.0),
    ("gateway", 0, "kill", 1.0),
    ("worker", 0, "freeze", 8.0),
    ("broker", 0, "restart", 1.0),
    ("redis", 0, "restart", 1.0),
    ("edge", 0, "restart", 1.0),
    ("redis", 0, "freeze", 2.0),
    ("api", 0, "restart", 1.0),
    ("gateway", 0, "restart", 1.0),
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The whole site with the demo model, and speech on the edge; each test leaves it running."""
    with site(tmp_path_factory.mktemp("site"), "fleet-test") as made:
        began = time.monotonic()
        made.up()
        note("`up --wait` of the whole site, offline speech on the edge", f"{time.monotonic() - began:.0f} s")
        yield made


def talk(fleet: Site, folder: Path, *words: str) -> None:
    """Let a simulated stock device talk to the site through its published ports."""
    report = folder / "report.json"
    texts = [argument for one in words for argument in ("--text", one)]
    command = [sys.executable, "-m", "fleet", "sim", "--ota", fleet.ota, "--mac", MAC, "--report", str(report), *texts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert report.exists(), done.stdout + done.stderr
    found = json.loads(report.read_text())
    turns = found["turns"]
    assert [turn["outcome"] for turn in turns] == ["answered"] * len(words), found
    assert all(turn["reply"] and turn["reply_seconds"] > 0 for turn in turns)
    first = ", ".join(f"{turn['latencies_ms']}" for turn in turns)
    note("spoken turns through the published ports (`fleet sim`, offline speech, demo model)", first)


def test_a_device_is_spoken_to_through_the_published_ports(fleet: Site, tmp_path: Path) -> None:
    talk(fleet, tmp_path, "What time is it?", "Set the volume to thirty percent.")


async def test_a_client_is_answered_through_the_published_gateway(fleet: Site) -> None:
    async with gateway_client(fleet.gateway_url) as client:
        turn = await client.turn("What time is it?")
    assert turn.content


async def test_an_operator_begins_with_the_code_in_the_log_of_control(fleet: Site) -> None:
    shown = fleet.container("control").logs().decode()
    code, authority = shown.split("within an hour: ")[1].split()[0], fleet.execute("control", "cat", AUTHORITY)[1]
    trust = ssl.create_default_context(cadata=authority)
    async with httpx2.AsyncClient(base_url=fleet.control_url, verify=trust, trust_env=False, timeout=60) as client:
        made = await client.post("/v1/tokens:first", json={"code": code})
        assert made.status_code == 201, made.text
        bearer = {"Authorization": f"Bearer {made.json()['token']}"}
        listed = await client.get("/v1/devices", headers=bearer)
        assert listed.status_code == 200, listed.text


def test_devices_use_tls_with_the_certificate_of_the_folder(fleet: Site) -> None:
    for keys, code in ((KEYS, 0), ("k1:another-key-0123456789", 5)):
        assert connect_code(fleet.mqtts, CredentialKeys(keys).issue("device", MAC), fleet.pki.client) == code


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_has_nothing_that_it_does_not_need(fleet: Site, service: str) -> None:
    assert fleet.execute(service, "sh", "-c", "touch /x /usr/x /etc/x")[0] != 0
    assert fleet.execute(service, "id", "-u")[1].strip() == USERS[service]
    status = fleet.execute(service, "cat", "/proc/1/status")[1]
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(found["CapEff"], 16) == 0 and found["NoNewPrivs"].strip() == "1"


def test_the_edge_uses_the_native_part_of_its_audio_socket(fleet: Site) -> None:
    lines = [json.loads(line) for line in fleet.container("edge").logs().splitlines() if line.startswith(b"{")]
    assert [line["native"] for line in lines if line["message"] == "audio socket bound"][-1] is True
    assert fleet.execute("edge", "sh", "-c", "command -v gcc make")[0] != 0, "the compiler came along"


def test_redis_is_reached_from_inside_only(fleet: Site) -> None:
    container = fleet.container("redis")
    assert not container.attrs["HostConfig"]["PortBindings"]
    # The demo model is in the other network only.
    reach = f"timeout 3 bash -c ': </dev/tcp/{address(fleet.container('model'), 'outside')}/8010'"
    assert fleet.execute("worker", "sh", "-c", reach)[0] == 0
    assert fleet.execute("redis", "sh", "-c", reach)[0] != 0, "it has a way out"


def test_memory_stays_below_its_limits(fleet: Site) -> None:
    figures = []
    for service in SERVICES:
        limit = fleet.container(service).attrs["HostConfig"]["Memory"]
        peak = peak_of(fleet, service)
        assert limit > 0 and peak < 0.9 * limit, service
        figures.append(f"{service} {peak // MB} of {limit // MB}")
    note("most memory so far, in MB, of the limit", ", ".join(figures))


def peak_of(fleet: Site, service: str) -> int:
    """Return the most memory that a container has had, page cache included, from either version of cgroups."""
    for file in ("/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"):
        code, text = fleet.execute(service, "cat", file)
        if code == 0:
            return int(text)
    pytest.fail("the engine shows no peak of memory")


def test_prometheus_finds_every_container(fleet: Site) -> None:
    fleet.compose("--profile", "observability", "up", "-d", "--no-build", "--pull", "never", "--no-deps", "prometheus")
    url = f"http://{address(fleet.container('prometheus'), 'outside')}:9090/api/v1/query"

    def found() -> dict[str, int]:
        try:
            answer = httpx2.get(url, params={"query": "sum by (role) (up{job='fleet'})"}, timeout=5, trust_env=False)
        except httpx2.HTTPError:
            return {}
        if answer.status_code != 200:
            return {}
        return {one["metric"]["role"]: int(one["value"][1]) for one in answer.json()["data"]["result"]}

    until(lambda: found() == {"worker": 2, "edge": 1, "gateway": 1, "api": 1, "control": 1}, 120)
    fleet.compose("--profile", "observability", "rm", "-sf", "prometheus")


async def test_what_is_stored_outlives_its_containers(fleet: Site) -> None:
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as client:
        await ask(fleet.ota, MAC, find_profile("P1"), client)
    for command in (("tokens", "new", "--scope", "devices:input", "anna"), ("devices", "revoke", REVOKED)):
        code, words = fleet.execute("api", "fleet", *command)
        assert code == 0, words
    fleet.down()
    assert not fleet.containers()
    fleet.up()
    assert "anna" in fleet.execute("api", "fleet", "tokens", "list")[1]
    assert MAC in fleet.execute("api", "fleet", "devices", "list")[1]
    revoked = CredentialKeys(KEYS).issue("device", REVOKED)
    assert connect_code(fleet.mqtt, revoked) == 5
    assert connect_code(fleet.mqtt, CredentialKeys(KEYS).issue("device", MAC)) == 0


async def test_nothing_is_lost_or_done_twice_while_every_service_is_hit(fleet: Site, tmp_path: Path) -> None:
    models = (fleet.host, free_port())
    fleet.use_models(f"http://{models[0]}:{models[1]}/v1", f"http://{models[0]}:{models[1]}/v1")
    fleet.up()
    plan = [
        Fault(number, 8 * number, target, which, how, seconds)
        for number, (target, which, how, seconds) in enumerate(FAULTS, start=1)
    ]
    options = Options(out=tmp_path, turns=8 * (len(plan) + 2), devices=6, models=models)
    outcome = await run(options, make=lambda out, _: containers(fleet, out), plan=plan)
    report(outcome)
    assert not outcome.violations, describe(outcome)
    assert len(outcome.faults) == len(plan)
