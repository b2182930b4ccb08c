"""By which address devices reach an edge: said, found out, or an error."""

import asyncio
import socket
from functools import partial
from pathlib import Path

import pytest

from fleet.adapters.net import kubernetes_node
from fleet.adapters.net.kubernetes_node import PUBLIC_LABEL
from fleet.adapters.net.stun import ask_stun
from fleet.ground.errors import ConfigError, Unavailable
from fleet.run import public_address
from fleet.run.public_address import AddressSources, find_public_address
from tests.support.kubernetes_api import kubernetes_api
from tests.support.ports import LOOPBACK, free_port
from tests.support.stun_server import stun_server, tell


def free_udp() -> tuple[str, int]:
    return LOOPBACK, free_port(socket.SOCK_DGRAM)


@pytest.fixture(autouse=True)
def _cluster_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_node, "_LIMIT_SECONDS", 240.0)


@pytest.fixture(autouse=True)
def _stun_servers_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_address, "ask_stun", partial(ask_stun, limit=240.0))


LABELLED = {"metadata": {"labels": {PUBLIC_LABEL: "n1.example"}}}
INTERNAL = {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}}


async def test_what_is_set_wins_and_nobody_is_asked() -> None:
    way = AddressSources("203.0.113.9:8890", ("127.0.0.1", 8884), node="n1", stun_servers="127.0.0.1:1")
    assert await find_public_address(way) == ("203.0.113.9", 8890)


@pytest.mark.parametrize("text", ["203.0.113.9", "host:", ":8884", "host:0", "host:65536", "a:b:8884"])
async def test_a_setting_that_is_no_address_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        await find_public_address(AddressSources(text, ("127.0.0.1", 8884)))


async def test_the_node_comes_before_stun(tmp_path: Path) -> None:
    async with asyncio.timeout(240), kubernetes_api(tmp_path, {"n1": LABELLED}) as (_, cluster):
        way = AddressSources(None, ("127.0.0.1", 8884), node="n1", stun_servers="127.0.0.1:1", cluster=cluster)
        assert await find_public_address(way) == ("n1.example", 8884)


async def test_stun_is_asked_when_the_node_has_no_public_address(tmp_path: Path) -> None:
    local = free_udp()
    async with (
        asyncio.timeout(240),
        kubernetes_api(tmp_path, {"n1": INTERNAL}) as (_, cluster),
        stun_server(tell("203.0.113.7")) as server,
    ):
        way = AddressSources(None, local, node="n1", stun_servers=server.name, cluster=cluster)
        assert await find_public_address(way) == ("203.0.113.7", local[1])


async def test_an_internal_address_is_no_address(tmp_path: Path) -> None:
    async with asyncio.timeout(240), kubernetes_api(tmp_path, {"n1": INTERNAL}) as (_, cluster):
        with pytest.raises(ConfigError, match=r"node n1 has neither.*FLEET_UDP_PUBLIC"):
            await find_public_address(AddressSources(None, ("127.0.0.1", 8884), node="n1", cluster=cluster))


async def test_without_any_way_it_is_an_error() -> None:
    with pytest.raises(ConfigError, match="set FLEET_UDP_PUBLIC"):
        await find_public_address(AddressSources(None, ("127.0.0.1", 8884), stun_servers=" , "))


async def test_one_silent_server_of_two_does_not_matter() -> None:
    local, dead = free_udp(), free_udp()
    async with asyncio.timeout(240), stun_server(tell("203.0.113.7")) as server:
        way = AddressSources(None, local, stun_servers=f"127.0.0.1:{dead[1]}, {server.name}")
        assert await find_public_address(way) == ("203.0.113.7", local[1])


async def test_no_server_that_answers_is_worth_another_try() -> None:
    with pytest.raises(Unavailable, match="STUN server"):
        await find_public_address(AddressSources(None, free_udp(), stun_servers=f"127.0.0.1:{free_udp()[1]}"))


async def test_a_nat_with_a_port_for_each_peer_is_an_error() -> None:
    local = free_udp()
    async with (
        asyncio.timeout(240),
        stun_server(tell("203.0.113.7")) as one,
        stun_server(tell("203.0.113.7", 4242)) as two,
    ):
        with pytest.raises(ConfigError, match="different addresses"):
            await find_public_address(AddressSources(None, local, stun_servers=f"{one.name},{two.name}"))


async def test_a_nat_that_changes_the_port_is_an_error() -> None:
    async with asyncio.timeout(240), stun_server(tell("203.0.113.7", 4242)) as server:
        with pytest.raises(ConfigError, match="to 4242"):
            await find_public_address(AddressSources(None, free_udp(), stun_servers=server.name))
