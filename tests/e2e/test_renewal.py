"""Passwords are replaced on a live fleet, and no device that its owner did not refuse is lost.

Real broker with plugin, Redis, roles and commands, and simulated devices that ask bootstrap at their start only.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI, Request

from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.ground.tasks import running
from fleet.wire.identity import Credentials, format_username
from fleet.wire.topics import up_topic
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.identity import Identity
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.api_server import BODY, headers
from tests.support.command_line import CommandLine, command_line
from tests.support.mqtt_raw import RawClient
from tests.support.ports import free_port
from tests.support.redis_store import opened
from tests.support.role_process import RoleProcess, started
from tests.support.role_site import SHARDS, RoleSite, role_site
from tests.support.scraped import ready
from tests.support.until import until
from tests.support.waking import broken_rules, wake_up

IDLE, BUSY, NEVER = "02:00:00:00:0f:01", "02:00:00:00:0f:02", "02:00:00:00:0f:03"
ERASED = "11111111-0000-4000-8000-000000000001"
STRANGER = "66666666-0000-4000-8000-000000000006"
NOT_AUTHORISED = 5
LIMIT = 240.0


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


class Fleet:
    """The site, with an api that can be replaced by one of another policy."""

    def __init__(self, site: RoleSite, command: CommandLine) -> None:
        self.site = site
        self._command = command
        self._api: RoleProcess | None = None

    async def serve(self, policy: str) -> None:
        """Replace the api, if there is one, by one of this policy."""
        if self._api is not None:
            await asyncio.to_thread(self._api.discard)
        port = free_port()
        self._api = self.site.start(
            "api",
            FLEET_HTTP_HOST=LOOPBACK,
            FLEET_HTTP_PORT=str(self.site.http_port),
            FLEET_ACTIVATION=policy,
            FLEET_REVOCATIONS_FILE=str(self.site.broker.directory / "revoked"),
            FLEET_METRICS_HOST=LOOPBACK,
            FLEET_METRICS_PORT=str(port),
        )
        await asyncio.to_thread(until, lambda: ready(port), LIMIT)

    def device(self, mac: str, client: str = "") -> SimDevice:
        return SimDevice(find_profile("P1"), ota_url=self.site.ota, mac=mac, client=client)

    async def entry(self, mac: str) -> Entry | None:
        async with opened(self.site.redis.url) as store:
            return next((one for one in await DeviceRegistry(store).entries() if one.device.mac == mac), None)

    async def until_connected(self, mac: str, fits: Callable[[str, int], bool]) -> Credentials:
        """Wait until a device is connected under such a policy and generation; return what it connected with."""
        async with asyncio.timeout(LIMIT):
            while True:
                found = await self.entry(mac)
                name = found.connected if found and found.device.online else None
                if name is not None and fits(name.policy, name.generation):
                    keys = self.site.keys
                    given = keys.issue("device", mac, policy=name.policy, generation=name.generation)
                    assert given.username == format_username(name)
                    return given
                await asyncio.sleep(0.2)

    async def refuses(self, who: Credentials) -> None:
        """Wait until the broker refuses credentials."""
        async with asyncio.timeout(LIMIT):
            while True:
                client = await RawClient.open(self.site.broker.port)
                code = await client.connect(who)
                await client.discard()
                if code == NOT_AUTHORISED:
                    return
                await asyncio.sleep(0.2)

    def run(self, *words: str) -> str:
        done = self._command.run("devices", *words, FLEET_REDIS_URL=self.site.redis.url, FLEET_SHARDS=str(SHARDS))
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    async def boot(self, mac: str, client: str) -> dict[str, object]:
        async with httpx2.AsyncClient(trust_env=False, timeout=LIMIT) as http:
            answer = await http.post(self.site.ota, headers=headers(Device_Id=mac, Client_Id=client), content=BODY)
        return dict(answer.json())


@asynccontextmanager
async def former_bootstrap(site: RoleSite) -> AsyncIterator[None]:
    """Serve bootstrap as versions before generations did, which gave a password to whoever asked."""
    app = FastAPI()

    @app.post("/xiaozhi/ota/")
    async def answer(request: Request) -> dict[str, object]:
        mac = request.headers["device-id"]
        given = site.keys.issue("device", mac)
        mqtt = {
            "endpoint": f"{LOOPBACK}:{site.broker.port}",
            "client_id": given.client_id,
            "username": given.username,
            "password": given.password,
            "publish_topic": up_topic(mac),
            "keepalive": 30,
        }
        return {"mqtt": mqtt, "server_time": {"timestamp": 1_700_000_000_000, "timezone_offset": 0}}

    async with running("former api", HttpServer(app, LOOPBACK, site.http_port).run):
        yield


@pytest.fixture
async def live(tmp_path: Path, fleet: CommandLine) -> AsyncIterator[Fleet]:
    with role_site(tmp_path) as site:
        ports = {"worker": free_port(), "edge": free_port()}
        told = {role: {"FLEET_METRICS_PORT": str(port), "FLEET_METRICS_HOST": LOOPBACK} for role, port in ports.items()}
        site.edge(**told["edge"])
        site.worker(**told["worker"])
        await asyncio.to_thread(until, lambda: all(ready(port) for port in ports.values()), LIMIT)
        yield Fleet(site, fleet)
        assert [line for role in site.roles for line in role.lines if "crashed" in str(line["message"])] == []


@pytest.mark.parametrize("before", ["former version", pytest.param("open", marks=pytest.mark.slow)])
async def test_a_stricter_policy_loses_no_device_and_then_refuses_old_passwords(live: Fleet, before: str) -> None:
    idle, busy = live.device(IDLE), live.device(BUSY)
    old = [
        live.site.keys.issue("device", mac, policy="" if before == "former version" else "open")
        for mac in (IDLE, BUSY, NEVER)
    ]
    former = former_bootstrap(live.site)
    if before == "open":
        await live.serve("open")
    else:
        await former.__aenter__()
    async with idle.running(LIMIT), busy.running(LIMIT):
        live.site.until_heard([IDLE, BUSY])
        await wake_up(busy)
        if before == "former version":
            await former.__aexit__(None, None, None)
        await live.serve("first")
        await live.until_connected(IDLE, lambda policy, generation: policy == "first" and generation > 0)
        await live.refuses(old[0])
        assert busy.session, "a conversation is not cut off"
        assert "old, until" in live.run("list")
        assert await busy.hang_up(240)
        await live.until_connected(BUSY, lambda policy, generation: policy == "first" and generation > 0)
        await live.refuses(old[1])
        # Now that no device has such a password any more, nobody's counts.
        [worker] = [role for role in live.site.roles if role.role == "worker"]
        await asyncio.to_thread(started, worker, "passwords that prove nothing are refused", LIMIT)
        await live.refuses(old[2])
        assert [len(one.journal.find("restart")) for one in (idle, busy)] == [1, 1]
        for one in (idle, busy):
            await wake_up(one)
            assert await one.hang_up(240)
        assert live.run("list").count("kept") == 2
        # Nobody else gets the password any more, and the next policy keeps them too.
        assert "mqtt" not in await live.boot(IDLE, STRANGER)
        assert STRANGER[:8] in live.run("claims")
        await live.serve("code")
    again = live.device(IDLE)
    async with again.running(LIMIT):
        await live.until_connected(IDLE, lambda policy, generation: policy == "code" and generation > 0)
    assert broken_rules(idle) == broken_rules(busy) == []


async def test_a_renewed_password_counts_alone_once_the_device_has_it(live: Fleet) -> None:
    await live.serve("first")
    async with live.device(IDLE).running(LIMIT) as device:
        first = await live.until_connected(IDLE, lambda policy, generation: policy == "first")
        told = live.run("renew", IDLE)
        assert "is valid until the device has a new one" in told
        second = await live.until_connected(IDLE, lambda *_: True)
        async with asyncio.timeout(LIMIT):
            while second.username == first.username:
                second = await live.until_connected(IDLE, lambda *_: True)
        await live.refuses(first)
        assert len(device.journal.find("restart")) == 1
        # Trying the old one may have taken its connection.
        await live.until_connected(IDLE, lambda _, generation: f".{generation}" in second.username)
        assert "devices with an old password: 0 of 1" in live.run("renew")
        assert "must be switched off and on" in live.run("renew", IDLE, "--now")
        await live.refuses(second)
        assert "old" in live.run("list")
    async with live.device(IDLE).running(LIMIT) as device:
        await wake_up(device)


async def test_a_claim_that_is_accepted_throws_the_foreign_holder_out(live: Fleet) -> None:
    await live.serve("first")
    holder, erased = live.device(IDLE, STRANGER), live.device(IDLE, ERASED)
    async with holder.running(LIMIT):
        first = await live.until_connected(IDLE, lambda policy, generation: policy == "first")
        async with asyncio.TaskGroup() as group:
            group.create_task(_serve_until_awake(erased))
            async with asyncio.timeout(LIMIT):
                while ERASED[:8] not in live.run("claims"):
                    await asyncio.sleep(0.2)
            assert "is bound" in live.run("accept", IDLE, ERASED[:8])
            await live.refuses(first)
        assert ERASED[:8] not in live.run("claims")
        assert "mqtt" not in await live.boot(IDLE, STRANGER)
        assert STRANGER[:8] in live.run("claims"), "now it is the one that claims"


async def test_who_is_unbound_is_cut_and_served_again_with_a_code(live: Fleet) -> None:
    await live.serve("first")
    async with live.device(IDLE).running(LIMIT):
        first = await live.until_connected(IDLE, lambda policy, generation: policy == "first")
        assert "must be switched off and on" in live.run("unbind", IDLE)
        await live.refuses(first)
        await asyncio.to_thread(until, lambda: not live.site.online(IDLE), LIMIT)
    async with asyncio.TaskGroup() as group:
        group.create_task(_serve_until_awake(live.device(IDLE)))
        async with asyncio.timeout(LIMIT):
            while IDLE not in live.run("claims"):
                await asyncio.sleep(0.2)
        section = (await live.boot(IDLE, _own(IDLE)))["activation"]
        assert isinstance(section, dict)
        assert "is bound" in live.run("bind", section["code"])


async def test_who_is_revoked_needs_a_new_password_when_it_is_let_in_again(live: Fleet) -> None:
    await live.serve("first")
    async with live.device(IDLE).running(LIMIT):
        first = await live.until_connected(IDLE, lambda policy, generation: policy == "first")
        live.run("revoke", IDLE)
        await live.refuses(first)
        assert "must be switched off and on" in live.run("unrevoke", IDLE)
        await live.refuses(first)
    async with live.device(IDLE).running(LIMIT) as device:
        await wake_up(device)


async def _serve_until_awake(device: SimDevice) -> None:
    """Power a device on, which may have to wait for its activation; return when it can talk."""
    async with device.running(LIMIT):
        await wake_up(device)


def _own(mac: str) -> str:
    return Identity.of(mac).client
