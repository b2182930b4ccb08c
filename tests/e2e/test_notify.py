"""`fleet devices notify` on a live fleet: real broker with plugin, roles and command, and simulated devices."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.runtime.state import State
from tests.support.forked import Forked
from tests.support.ogg import write_opus
from tests.support.ports import free_port
from tests.support.role_site import SHARDS, RoleSite, role_site
from tests.support.scraped import ready
from tests.support.scripted_server import ScriptedServer, page, tone
from tests.support.until import until
from tests.support.waking import broken_rules, wake_up

NEW_MAC, OLD_MAC, AWAY_MAC = "02:00:00:00:0f:01", "02:00:00:00:0f:02", "02:00:00:00:0f:03"
LIMIT = 240.0
PACKETS = 10


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[RoleSite]:
    with role_site(tmp_path) as site:
        ports = {role: free_port() for role in ("worker", "edge", "api")}
        health = {
            role: {"FLEET_METRICS_PORT": str(port), "FLEET_METRICS_HOST": LOOPBACK} for role, port in ports.items()
        }
        site.edge(**health["edge"])
        site.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(site.http_port), **health["api"])
        site.worker(**health["worker"])
        await asyncio.to_thread(until, lambda: all(ready(port) for port in ports.values()), LIMIT)
        yield site


@pytest.fixture
async def files() -> AsyncIterator[ScriptedServer]:
    """Serves the file to play."""
    encoder = Encoder(24_000, 60)
    pcm, size = tone(0.06 * PACKETS), encoder.frame_bytes
    packets = [encoder.encode(pcm[at : at + size]) for at in range(0, PACKETS * size, size)]
    async with ScriptedServer.running() as server:
        server.pages["/done.ogg"] = page(write_opus(packets))
        yield server


async def notify(site: RoleSite, mac: str, *more: str) -> tuple[int, str]:
    """Run the command as an operator does; return its exit code and what it said."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    reached = {
        "FLEET_REDIS_URL": site.redis.url,
        "FLEET_MQTT_URL": site.broker.url,
        "FLEET_SHARDS": str(SHARDS),
        "FLEET_KEYS_FILE": str(site.broker.directory / "keys"),
    }
    command = Forked(["devices", "notify", mac, *more], {**kept, **reached}, stdout=True)
    with command.written as written:
        said = await asyncio.to_thread(written.read)
    return await asyncio.to_thread(command.wait, LIMIT), said


@pytest.mark.requirement("XZ-040", "XZ-041", "XZ-043")
async def test_an_idle_device_with_firmware_2_5_plays_it_and_no_other_is_sent_it(
    site: RoleSite, files: ScriptedServer
) -> None:
    url = files.ota_url.replace("/ota/", "/done.ogg")
    new = SimDevice(find_profile("P9"), ota_url=site.ota, mac=NEW_MAC)
    old = SimDevice(find_profile("P1"), ota_url=site.ota, mac=OLD_MAC)
    async with new.running(LIMIT), old.running(LIMIT):
        code, said = await notify(site, NEW_MAC, url, "--subtitle", "0:Done.", "--subtitle", "300:Saved.", "--json")
        assert (code, json.loads(said)) == (0, {"devices": [{"mac": NEW_MAC, "sent": True}]})
        assert await new.until(LIMIT, lambda: bool(new.journal.find("notified")))
        assert [one.detail["text"] for one in new.journal.find("subtitle")] == ["Done.", "Saved."]
        assert new.report.counters["downlink_played"] == PACKETS
        assert await new.until(LIMIT, lambda: new.state is State.IDLE)

        assert await notify(site, OLD_MAC, url) == (1, f"{OLD_MAC} has firmware 2.4.2; notifications need 2.5\n")
        assert await notify(site, AWAY_MAC, url) == (1, f"{AWAY_MAC} is not connected\n")
        await wake_up(new)
        assert await notify(site, NEW_MAC, url) == (1, f"{NEW_MAC} is in a conversation and would ignore it\n")
        assert await new.hang_up(240)
        code, said = await notify(site, NEW_MAC, "ftp://host/x.ogg")
        assert (code, said) == (2, "fleet: ftp://host/x.ogg is not an http or https address\n")
    assert len(new.journal.find("notify")) == 1
    assert broken_rules(new) == broken_rules(old) == []
