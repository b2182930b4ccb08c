"""A whole simulated device that boots over HTTPS and connects with TLS on 8883, as firmware does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleet.adapters.net.http.serving import serve
from fleet.adapters.redis.client.store import Store
from fleet.ground.settings import load
from fleet.ground.tasks import running
from fleet.roles.api.app import build_app
from fleet.roles.front import Front
from fleet.run.front import tls_binding
from fleet.wire.identity import CredentialKeys
from fleet.workbench.conformance.checks import select
from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.run import Observer, plan, run_all
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.device import ScriptedDevice
from tests.support.certificates import Pki, firmware_address
from tests.support.mosquitto_server import MosquittoServer
from tests.support.patience import API, lengthen
from tests.support.redis_store import opened

MAC = "02:00:00:77:01:01"


@asynccontextmanager
async def site(store: Store, keys: CredentialKeys, broker: MosquittoServer, pki: Pki, host: str) -> AsyncIterator[str]:
    """Run a front and an api with TLS; give the bootstrap address."""
    settings = load(mqtt_host=host, mqtt_port=0, http_host=host, http_port=0, https_port=0, **pki.settings)
    async with tls_binding(settings) as secure:
        front = Front(host=host, port=0, upstream=broker.url, keys=keys, secure=secure)
        app = build_app(settings, keys, store)
        async with running("front", front.run), serve(app, settings) as server:
            await front.started.wait()
            assert front.tls_port == 8883
            yield f"https://{host}:{server.port}/xiaozhi/ota/"


@pytest.fixture
async def store(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    lengthen(monkeypatch, API)
    async with opened(redis_url) as store:
        yield store


async def test_device_boots_and_connects_with_tls_throughout(
    store: Store, keys: CredentialKeys, plain_broker: MosquittoServer, tmp_path: Path
) -> None:
    host = firmware_address()
    pki = Pki(tmp_path / "pki", host)
    async with site(store, keys, plain_broker, pki, host) as ota:
        device = SimDevice(find_profile("P1"), ota_url=ota, mac=MAC, tls=pki.client)
        async with asyncio.timeout(240), device.running():
            assert [step.detail["endpoint"] for step in device.report.steps if step.name == "ota"] == [f"{host}:8883"]
        assert not device.report.violations


async def test_device_that_trusts_public_authorities_only_does_not_boot(
    store: Store, keys: CredentialKeys, plain_broker: MosquittoServer, tmp_path: Path
) -> None:
    host = firmware_address()
    profile = find_profile("P1")
    async with site(store, keys, plain_broker, Pki(tmp_path / "pki", host), host) as ota:
        scripted = ScriptedDevice(profile, MAC, ota, None)
        with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
            async with asyncio.timeout(240), scripted.running():
                await scripted.boot()


async def test_conformance_reaches_a_server_of_a_private_authority(
    store: Store, keys: CredentialKeys, plain_broker: MosquittoServer, tmp_path: Path
) -> None:
    host = firmware_address()
    pki = Pki(tmp_path / "pki", host)
    tasks = plan(select(["O1", "O10", "O11", "M3"]), [find_profile("P1")], 1)
    observer = Observer(lambda _: None, lambda _: None)
    async with site(store, keys, plain_broker, pki, host) as ota, asyncio.timeout(240):
        results = await run_all(tasks, Setup(ota, tls=pki.client), observer, 2)
    outcomes = {result.id: result.outcome for result in results}
    assert outcomes == dict.fromkeys(["O1", "O10", "O11", "M3"], "passed"), [result.seen for result in results]
