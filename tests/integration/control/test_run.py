"""Control as a part of a process: its certificate, its one database, and that others go on without it."""

import ssl
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.net.own_address import own_address
from fleet.adapters.net.tls.private_authority import CA
from fleet.ground.errors import ConfigError
from fleet.ground.settings import load
from fleet.run.control import control, keeping_control
from fleet.run.resources import ProcessResources
from fleet.wire.identity import CredentialKeys
from tests.support.memory_store import memory_store


async def resources(folder: Path, **settings: Any) -> ProcessResources:
    loaded = load(data_dir=folder, control_port=0, drain_seconds=0, **settings)
    return ProcessResources(
        loaded, CredentialKeys("k:a-key-for-tests-of-control"), None, await memory_store(), Readiness()
    )


async def test_other_machines_get_https_and_a_code_is_shown_once(tmp_path: Path) -> None:
    shown: list[str] = []
    async with control(await resources(tmp_path, control_host="0.0.0.0"), shown.append) as server:
        authority = ssl.create_default_context(cafile=tmp_path / "control-tls" / CA)
        async with httpx2.AsyncClient(verify=authority, trust_env=False, timeout=240) as client:
            url = f"https://{own_address()}:{server.port}/v1/tokens:first"
            code = shown[0].split("within an hour: ")[1].split()[0]
            made = await client.post(url, json={"code": code})
            assert made.status_code == 201
    async with control(await resources(tmp_path), shown.append) as server:
        assert len(shown) == 1, "there is a token"
        with pytest.raises(ConfigError, match="more than one needs PostgreSQL"):
            async with control(await resources(tmp_path)):
                pass


async def test_accounts_work_from_another_address_over_https_alone(tmp_path: Path) -> None:
    shown: list[str] = []
    given = {"name": "ling", "password": "correct horse battery"}
    async with control(await resources(tmp_path, control_host="0.0.0.0"), shown.append) as server:
        authority = ssl.create_default_context(cafile=tmp_path / "control-tls" / CA)
        url = f"https://{own_address()}:{server.port}"
        async with httpx2.AsyncClient(base_url=url, verify=authority, trust_env=False, timeout=240) as client:
            code = shown[0].split("within an hour: ")[1].split()[0]
            made = await client.post("/v1/accounts:first", json={**given, "code": code}, headers={"Origin": url})
            assert made.status_code == 201
            assert all(line.startswith("__Host-") for line in made.headers.get_list("set-cookie"))
            assert (await client.get("/v1/me")).json()["name"] == "ling"
            assert (await client.delete("/v1/session", headers={"Origin": url})).status_code == 204
            assert (await client.get("/v1/me")).status_code == 401
    async with control(await resources(tmp_path, control_host="0.0.0.0", control_proxy=True)) as server:
        url = f"http://{own_address()}:{server.port}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=240) as client:
            refused = await client.post("/v1/session", json=given, headers={"X-Forwarded-Proto": "https"})
            is_apart = own_address() != "127.0.0.1"  # not on a machine without a network
            assert refused.json()["code"] == "https-needed" or not is_apart, "nobody trusts what this address says"
        url = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=240) as client:
            assert (await client.post("/v1/session", json=given)).status_code == 201


async def test_what_control_lacks_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "control.db").mkdir()
    async with keeping_control(await resources(tmp_path), lambda _: None) as kept:
        await kept.tried.wait()
        assert kept.port is None
