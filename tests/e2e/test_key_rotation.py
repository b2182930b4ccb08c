"""A key is replaced on a live fleet: real broker with plugin, roles and command, and two simulated devices."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.wire.identity import CredentialKeys
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.mqtt_raw import RawClient
from tests.support.ports import free_port
from tests.support.redis_store import opened
from tests.support.role_process import RoleProcess
from tests.support.role_site import SHARDS, RoleSite, role_site
from tests.support.scraped import ready
from tests.support.until import until
from tests.support.waking import broken_rules, wake_up

OLD_MAC, NEW_MAC = "02:00:00:00:0e:01", "02:00:00:00:0e:02"
FIRST = "k1 the-first-key-of-this-test\n"
NOT_AUTHORISED = 5
LIMIT = 240.0
ROTATE = ("keys", "rotate", "--json", "--settle", "4", "--patience", str(LIMIT))


class Rotation:
    """`fleet keys rotate`, as an operator runs it."""

    def __init__(self, site: RoleSite) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
        reached = {"FLEET_REDIS_URL": site.redis.url, "FLEET_MQTT_URL": site.broker.url, "FLEET_SHARDS": str(SHARDS)}
        self._output, self._steps = site.directory / "rotate.json", site.directory / "rotate.txt"
        with self._output.open("w") as output, self._steps.open("w") as steps:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.patient_fleet", *ROTATE],
                env={**kept, **reached, "FLEET_KEYS_FILE": str(keys_path(site))},
                stdout=output,
                stderr=steps,
            )

    @property
    def told(self) -> str:
        """The steps so far."""
        return self._steps.read_text()

    @property
    def result(self) -> dict[str, Any]:
        """What the command printed for programs."""
        return dict(json.loads(self._output.read_text()))

    async def until_told(self, words: str) -> None:
        def is_told() -> bool:
            assert words in self.told or self._process.poll() is None, self.told
            return words in self.told

        await asyncio.to_thread(until, is_told, LIMIT)

    async def code(self) -> int:
        return await asyncio.to_thread(self._process.wait, LIMIT)

    def discard(self) -> None:
        self._process.kill()
        self._process.wait(LIMIT)


def keys_path(site: RoleSite) -> Path:
    return site.broker.directory / "keys"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[RoleSite]:
    """A site that follows one file of keys, its broker too."""
    with role_site(tmp_path) as site:
        site.broker.write_keys(FIRST)
        site.broker.restart()
        yield site
        assert [line for role in site.roles for line in role.lines if "crashed" in str(line["message"])] == []


@contextmanager
def rotating(site: RoleSite) -> Iterator[Rotation]:
    rotation = Rotation(site)
    try:
        yield rotation
    finally:
        rotation.discard()


async def start_roles(site: RoleSite) -> dict[str, int]:
    """Start a worker, an edge and an api; return their ports for health once all are ready."""
    ports = {role: free_port() for role in ("worker", "edge", "api")}
    shared = {
        role: {
            "FLEET_KEYS_FILE": str(keys_path(site)),
            "FLEET_METRICS_PORT": str(port),
            "FLEET_METRICS_HOST": LOOPBACK,
        }
        for role, port in ports.items()
    }
    site.edge(**shared["edge"])
    site.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(site.http_port), **shared["api"])
    site.worker(**shared["worker"])
    await until_ready(ports)
    return ports


async def until_ready(ports: dict[str, int]) -> None:
    await asyncio.to_thread(until, lambda: all(ready(port) for port in ports.values()), LIMIT)


def signs_with(role: RoleProcess, key: str) -> bool:
    """Return whether a role has said that it signs with a key now."""
    told = [str(line["keys"]) for line in role.lines if line["message"] == "keys changed"]
    return bool(told) and told[-1].split(",")[0] == key


async def passwords(site: RoleSite) -> dict[str, str]:
    """Return under which key each device that is connected has its password."""
    async with opened(site.redis.url) as store:
        return {entry.device.mac: entry.key for entry in await DeviceRegistry(store).entries() if entry.device.online}


@pytest.fixture
async def roles(site: RoleSite) -> AsyncIterator[dict[str, int]]:
    yield await start_roles(site)


async def test_a_key_is_replaced_and_no_device_is_locked_out(site: RoleSite, roles: dict[str, int]) -> None:
    old = SimDevice(find_profile("P1"), ota_url=site.ota, mac=OLD_MAC)
    new = SimDevice(find_profile("P1"), ota_url=site.ota, mac=NEW_MAC)
    first = CredentialKeys(FIRST).issue("device", OLD_MAC)
    [api] = [role for role in site.roles if role.role == "api"]
    async with old.running(LIMIT):
        # A conversation keeps it from being restarted, so both keys are in use for as long as this test likes.
        await wake_up(old)
        with rotating(site) as rotation:
            await rotation.until_told("signs now: k2")
            await asyncio.to_thread(until, lambda: signs_with(api, "k2"), LIMIT)
            async with new.running(LIMIT):
                await rotation.until_told("devices with an older password: 1")
                assert await passwords(site) == {OLD_MAC: "k1", NEW_MAC: "k2"}
                assert CredentialKeys(keys_path(site).read_text()).ids == ("k2", "k1")
                assert old.session, "the one that talks is not cut off"
                assert await old.hang_up(240)
                assert await rotation.code() == 0, rotation.told
                assert "retired: k1" in rotation.told
                assert rotation.result == {"keys": [{"key": "k2", "state": "signs"}], "needed_by": []}
                assert CredentialKeys(keys_path(site).read_text()).ids == ("k2",)
                assert await passwords(site) == {OLD_MAC: "k2", NEW_MAC: "k2"}
                assert [len(one.journal.find("restart")) for one in (old, new)] == [1, 0]
                await asyncio.to_thread(until, lambda: "key k1 was retired" in site.broker.log, LIMIT)
                stranger = await RawClient.open(site.broker.port)
                assert await stranger.connect(first) == NOT_AUTHORISED
                await stranger.discard()
                # The roles' own connections were under the old key, too.
                await until_ready(roles)
                for device in (old, new):
                    await wake_up(device)
                    assert await device.hang_up(240)
    assert broken_rules(old) == broken_rules(new) == []
