"""Devices of a crowd, against a server that sends what the test says."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.sim.crowd import crowd as crowd_module
from fleet.workbench.sim.crowd.crowd import Crowd, CrowdPlan, mac_of, running
from fleet.workbench.sim.crowd.place import source_of
from fleet.workbench.sim.crowd.shares import Shares
from fleet.workbench.sim.profiles.timing import Timing
from tests.support.leaping import leaping
from tests.support.offered_firmware import image_of
from tests.support.ogg import write_opus
from tests.support.scripted_server import ScriptedServer, page, tone

MAC = mac_of(0)
VOLUME = "self.audio_speaker.set_volume"


@asynccontextmanager
async def crowd_of(server: ScriptedServer, count: int = 1, **shares: float) -> AsyncIterator[Crowd]:
    async with running(CrowdPlan(server.ota_url, count, rate=1_000.0, shares=Shares(**shares))) as crowd:
        async with asyncio.timeout(240):
            await crowd.boot()
        yield crowd


class Caller:
    """Sends requests to the device's tools."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server, self._ids = server, itertools.count(1)

    def ask(self, method: str, **params: Any) -> int:
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._server.send(type="mcp", payload=request)
        return number

    async def answer(self, method: str, **params: Any) -> Any:
        number = self.ask(method, **params)
        found = await self._server.expect(type="mcp")
        assert found["payload"]["id"] == number
        return found["payload"].get("result") or found["payload"]["error"]

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.answer("tools/call", name=tool, arguments=arguments)


def _header(headers: dict[str, str], wanted: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == wanted), "")


async def until(server: ScriptedServer, crowd: Crowd, what: str, count: int = 1) -> None:
    async with asyncio.timeout(240):
        while crowd.ledger.counts[what] < count:
            await asyncio.sleep(0.02)


async def test_a_device_boots_connects_and_its_tools_answer_as_the_contract_says(server: ScriptedServer) -> None:
    async with crowd_of(server) as crowd:
        assert (crowd.online, _header(server.ota_requests[0][0], "device-id")) == (1, MAC)
        caller = Caller(server)
        assert (await caller.answer("initialize", capabilities={}))["serverInfo"]["version"] == "2.4.2"
        names = [one["name"] for one in (await caller.answer("tools/list", cursor=""))["tools"]]
        assert VOLUME in names and "self.reboot" not in names
        assert (await caller.call(VOLUME, volume=12))["content"] == [{"type": "text", "text": "true"}]
        assert '"volume":12' in (await caller.call("self.get_device_status"))["content"][0]["text"]
        assert "exceeds" in (await caller.call(VOLUME, volume=101))["message"]
        assert "Unknown tool" in (await caller.call("self.nothing"))["message"]
        told = crowd.ledger.document()["calls"][MAC]
        assert told == [[VOLUME, '{"volume": 12}', "ok"], ["self.get_device_status", "{}", "ok"]]
        assert crowd.ledger.pace.total() == 2


async def test_devices_connect_to_the_broker_of_the_plan_and_so_many_boot_at_once(server: ScriptedServer) -> None:
    nowhere = CrowdPlan(server.ota_url, 3, rate=1_000.0, at_once=1, broker="127.0.0.1:9")
    async with running(nowhere) as crowd:
        booting = asyncio.create_task(crowd.boot())
        async with asyncio.timeout(240):
            while not any(what.startswith("broker: ") for what in crowd.ledger.counts):
                await asyncio.sleep(0.02)
        assert (len(crowd.members), crowd.online) == (1, 0)
        booting.cancel()


async def test_the_next_device_boots_when_the_server_has_asked_the_one_before_for_its_tools(
    server: ScriptedServer,
) -> None:
    async with running(CrowdPlan(server.ota_url, 2, rate=1_000.0, at_once=1)) as crowd:
        booting = asyncio.create_task(crowd.boot())
        await until(server, crowd, "connections")
        caller = Caller(server)
        await caller.answer("initialize", capabilities={})
        assert len(crowd.members) == 1
        await caller.answer("tools/list", cursor="")
        await until(server, crowd, "connections", 2)
        assert len(server.ota_requests) == 2
        booting.cancel()


async def test_failing_silent_and_repeated_calls_are_noted_as_they_are(server: ScriptedServer) -> None:
    async with crowd_of(server, error=1.0) as crowd:
        caller = Caller(server)
        assert "message" in await caller.call(VOLUME, volume=1)
        crowd.calls.shares = Shares(silent=1.0)
        caller.ask("tools/call", name=VOLUME, arguments={"volume": 1})
        await caller.answer("tools/list", cursor="")
        assert [one.fate for one in crowd.ledger.calls[MAC]] == ["error", "silent"]


async def test_offline_devices_boot_and_connect_when_they_are_told_to(server: ScriptedServer) -> None:
    async with crowd_of(server, count=40, offline=0.5) as crowd:
        assert len(server.ota_requests) == 40
        assert 5 < crowd.online < 35
        await crowd.arrive(40, 1_000.0)
        await until(server, crowd, "connections", 40)
        assert crowd.online == 40


async def test_devices_come_back_ten_seconds_after_they_lost_their_connection(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    leap = leaping(monkeypatch)
    async with crowd_of(server) as crowd:
        begun = asyncio.get_running_loop().time()
        server.drop_connections()
        await until(server, crowd, "losses")
        await asyncio.sleep(0)
        leap(9.5)
        await until(server, crowd, "connections", 2)
        assert asyncio.get_running_loop().time() - begun >= 10
        assert (crowd.ledger.counts["losses"], len(server.ota_requests)) == (1, 1)


async def test_a_restart_and_an_upgrade_boot_again_and_a_bad_image_leaves_the_old_version(
    server: ScriptedServer,
) -> None:
    server.pages["/new.bin"] = page(image_of("2.6.0"))
    new, missing = (server.ota_url.replace("/ota/", path) for path in ("/new.bin", "/missing.bin"))
    async with crowd_of(server, brick=1.0) as crowd:
        caller = Caller(server)
        said = await caller.call("self.upgrade_firmware", url=missing)
        assert said["content"][0]["text"] == "true", "a reply means that it failed"
        caller.ask("tools/call", name="self.upgrade_firmware", arguments={"url": new})
        await until(server, crowd, "boots", 2)
        assert crowd.ledger.counts["images that do not boot"] == 1
        await until(server, crowd, "connections", 2)
        crowd._upgrades.shares = Shares()
        caller.ask("tools/call", name="self.upgrade_firmware", arguments={"url": new})
        await until(server, crowd, "boots", 3)
        await until(server, crowd, "connections", 3)
        server.send(type="system", command="reboot")
        await until(server, crowd, "boots", 4)
        agents = [one for headers, _ in server.ota_requests if (one := _header(headers, "user-agent"))]
        assert agents == ["bread-compact-wifi/2.4.2"] * 2 + ["bread-compact-wifi/2.6.0"] * 2


async def test_a_device_that_is_shown_a_code_is_counted_while_it_waits_to_be_accepted(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_module, "_TIMING", Timing(ota_retry=0.01))
    accepted = server.ota_answer
    server.ota_answer = {"activation": {"code": "123456", "message": "123456", "challenge": "c"}}
    async with running(CrowdPlan(server.ota_url, 1, rate=1_000.0)) as crowd:
        booting = asyncio.create_task(crowd.boot())
        async with asyncio.timeout(240):
            while len(server.ota_requests) < 3:
                await asyncio.sleep(0.02)
        assert dict(crowd.ledger.counts) == {"wait to be accepted": 1}
        server.ota_answer = accepted
        await until(server, crowd, "connections")
        assert dict(crowd.ledger.counts) == {"boots": 1, "connections": 1}
        booting.cancel()


async def test_an_image_that_bootstrap_offers_is_installed(server: ScriptedServer) -> None:
    server.pages["/new.bin"] = page(image_of("2.6.0"))
    server.ota_answer["firmware"] = {"version": "2.6.0", "url": server.ota_url.replace("/ota/", "/new.bin")}
    async with crowd_of(server) as crowd:
        assert (crowd.ledger.counts["upgrades"], crowd.ledger.counts["boots"]) == (1, 2)
        assert crowd.members[0].kind.profile.version == "2.6.0"


@pytest.mark.parametrize("newer", [True, False])
async def test_firmware_2_5_plays_a_notification_and_older_firmware_ignores_it(
    server: ScriptedServer, *, newer: bool
) -> None:
    encoder = Encoder(24_000, 60)
    pcm, size = tone(0.6), encoder.frame_bytes
    packets = [encoder.encode(pcm[at : at + size]) for at in range(0, 10 * size, size)]
    server.pages["/notice.ogg"] = page(write_opus(packets))
    async with crowd_of(server, newer=float(newer)) as crowd:
        url = server.ota_url.replace("/ota/", "/notice.ogg")
        server.send(type="notify", audio_url=url)
        if newer:
            async with asyncio.timeout(240):
                while not crowd.ledger.notices:
                    await asyncio.sleep(0.02)
        else:
            await until(server, crowd, "notify messages")
        assert crowd.ledger.notices == ({MAC: [url]} if newer else {})


async def test_devices_come_from_many_addresses(server: ScriptedServer) -> None:
    assert len({source_of(number) for number in range(200)}) == 4
    async with crowd_of(server, count=120) as crowd:
        sources = {one._transport.get_extra_info("sockname")[0] for one in crowd.members.values() if one._transport}
        assert sources == {source_of(0), source_of(50), source_of(100)}


def test_wrong_words_at_the_command_line_are_refused() -> None:
    import typer

    from fleet.workbench.sim import command

    app = typer.Typer()
    app.command()(command.build(None))  # type: ignore[arg-type]
    for words in (["--share", "sleepy=1"], ["--share", "error=2"]):
        found = CliRunner().invoke(app, ["--ota", "http://127.0.0.1:1/", "--crowd", "1", *words])
        assert (found.exit_code, "is no share" in found.output) == (2, True), found.output
    for option, value in {"--mac": "02:00:00:00:00:09", "--text": "Hello", "--profile": "P8", "--ca": "ca.pem"}.items():
        found = CliRunner().invoke(app, ["--ota", "http://127.0.0.1:1/", "--crowd", "1", option, value])
        assert (found.exit_code, f"{option} does not go with --crowd" in found.output) == (2, True), found.output
