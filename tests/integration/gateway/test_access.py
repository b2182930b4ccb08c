"""Who may use the gateway: everybody by default, as its document has it; else who has a token, and few pages."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, GATEWAY_CONNECT, OperatorTokens
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.ground.settings import load
from fleet.ground.tasks import single_exception
from tests.support.certificates import Pki, serial
from tests.support.gateway_stage import PATIENCE, UNHURRIED, ScriptedModel, Stage, gateway_stage, says
from tests.support.redis_store import opened
from tests.support.registrar_client import registrar_gateway

EVIL = "https://evil.example"


@pytest.fixture
def tokens(tmp_path: Path) -> OperatorTokens:
    return OperatorTokens(tmp_path / "tokens")


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    async with opened(redis_url) as store:
        yield store


@pytest.fixture
def closed_door(tmp_path: Path) -> dict[str, Any]:
    return {"gateway_tokens": True, "operator_tokens_file": tmp_path / "tokens"}


def model() -> ScriptedModel:
    return ScriptedModel(says("A."))


def bearer(token: str) -> dict[str, dict[str, str]]:
    return {"additional_headers": {"Authorization": f"Bearer {token}"}}


async def served(url: str, **options: Any) -> str | None:
    """Fail unless a client is answered; return the subprotocol that was agreed on."""
    async with asyncio.timeout(PATIENCE), connect(url, proxy=None, **UNHURRIED, **options) as socket:
        assert json.loads(await socket.recv())["status"] == "connected"
        await socket.send('{"type": "ping"}')
        assert json.loads(await socket.recv())["type"] == "pong"
        return socket.subprotocol


async def refused(url: str, **options: Any) -> InvalidStatus:
    """Fail unless a client gets another answer than a WebSocket; return it."""
    with pytest.raises(InvalidStatus) as raised:
        async with asyncio.timeout(PATIENCE):
            await connect(url, proxy=None, **UNHURRIED, **options)
    return raised.value


async def test_by_default_no_token_is_asked_for(redis_url: str) -> None:
    assert load().gateway_tokens is False
    async with gateway_stage(redis_url, model()) as stage:
        await served(stage.url)
        await served(f"{stage.url}/?token=anything", **bearer("anything"))
        await served(stage.url, subprotocols=[Subprotocol("fleet.gateway"), Subprotocol("fleet.token.anything")])
        assert not stage.gateway.connection_limits.counts


async def test_a_token_comes_in_a_header_in_the_address_or_as_a_subprotocol(
    redis_url: str, tokens: OperatorTokens, closed_door: dict[str, Any]
) -> None:
    token = tokens.add("anna", frozenset({GATEWAY_CONNECT}))
    async with gateway_stage(redis_url, model(), **closed_door) as stage:
        await served(stage.url, **bearer(token))
        await served(f"{stage.url}/?a=b&token={token}")
        offered = [Subprotocol("fleet.gateway"), Subprotocol(f"fleet.token.{token}")]
        assert await served(stage.url, subprotocols=offered) == "fleet.gateway"


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=flt_wrong", "/?" + "a=b&" * 100 + "token=x"])
async def test_without_a_token_there_is_401_and_no_websocket(
    redis_url: str, closed_door: dict[str, Any], path: str
) -> None:
    async with gateway_stage(redis_url, model(), **closed_door) as stage:
        answer = (await refused(stage.url + path)).response
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="fleet"'
        assert (await refused(stage.url + path, **bearer("flt_wrong"))).response.status_code == 401
        assert stage.gateway.connection_limits.counts["token"] == 2
        async with httpx2.AsyncClient(
            base_url=stage.url.replace("ws", "http"), trust_env=False, timeout=PATIENCE
        ) as http:
            for path in ("/test", "/healthz", "/readyz"):
                assert (await http.get(path)).status_code == 200


async def test_a_token_of_another_scope_is_not_enough(
    redis_url: str, tokens: OperatorTokens, closed_door: dict[str, Any]
) -> None:
    token = tokens.add("anna", frozenset({DEVICES_INPUT}))
    async with gateway_stage(redis_url, model(), **closed_door) as stage:
        assert (await refused(stage.url, **bearer(token))).response.status_code == 403
        assert stage.gateway.connection_limits.counts["scope"] == 1


async def test_a_revoked_token_ends_its_connections_at_their_next_message(
    redis_url: str, tokens: OperatorTokens, closed_door: dict[str, Any]
) -> None:
    anna, ben = (tokens.add(name, frozenset({GATEWAY_CONNECT})) for name in ("anna", "ben"))
    async with (
        gateway_stage(redis_url, model(), **closed_door) as stage,
        stage.client(**bearer(anna)) as one,
        stage.client(**bearer(ben)) as two,
    ):
        await one.silence()
        tokens.remove("anna")
        await one.send("ping")
        with pytest.raises(ConnectionClosed) as closed:
            await one.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        await two.silence()
        assert (await refused(stage.url, **bearer(anna))).response.status_code == 401
        assert stage.gateway.connection_limits.counts["revoked"] == 1


async def test_while_the_file_is_wrong_nobodys_token_counts(
    redis_url: str, tokens: OperatorTokens, closed_door: dict[str, Any]
) -> None:
    token = tokens.add("anna", frozenset({GATEWAY_CONNECT}))
    async with gateway_stage(redis_url, model(), **closed_door) as stage:
        await served(stage.url, **bearer(token))
        closed_door["operator_tokens_file"].write_text("junk\n")
        assert (await refused(stage.url, **bearer(token))).response.status_code == 503
        assert stage.gateway.connection_limits.counts["no tokens"] == 1


@pytest.mark.parametrize("origin", [None, "null", "file://", "http://localhost:5173", "http://127.0.0.1"])
async def test_programs_and_pages_of_this_machine_come_in(redis_url: str, origin: str | None) -> None:
    async with gateway_stage(redis_url, model()) as stage:
        await served(stage.url, origin=None if origin is None else Origin(origin))
        await served(f"ws://localhost:{stage.gateway.port}", origin=None if origin is None else Origin(origin))


async def test_a_foreign_page_does_not_come_in(redis_url: str) -> None:
    async with gateway_stage(redis_url, model()) as stage:
        for origin in (EVIL, f"http://127.0.0.1.evil.example:{stage.gateway.port}"):
            assert (await refused(stage.url, origin=Origin(origin))).response.status_code == 403
        # A program that says the same twice is no way round.
        headers = [("Origin", "http://localhost"), ("Origin", EVIL)]
        assert (await refused(stage.url, additional_headers=headers)).response.status_code == 403
        assert stage.gateway.connection_limits.counts["origin"] == 3
        await served(stage.url)


async def test_files_stay_out_of_a_gateway_elsewhere_and_the_visitors_own_pages_do_not(redis_url: str) -> None:
    async with gateway_stage(redis_url, model(), trusted_proxies="") as stage:
        elsewhere: dict[str, Any] = {"host": "127.0.0.1", "port": stage.gateway.port}
        url = "ws://gateway.example:9400"
        assert (await refused(url, origin=Origin("null"), **elsewhere)).response.status_code == 403
        await served(url, origin=Origin("http://gateway.example"), **elsewhere)
        await served(url, origin=Origin("http://localhost:3000"), **elsewhere)


async def test_who_is_listed_comes_in_and_nobody_else(redis_url: str) -> None:
    async with gateway_stage(redis_url, model(), gateway_origins="https://app.example.org,null") as stage:
        for origin in ("https://app.example.org", "null", stage.url.replace("ws", "http")):
            await served(stage.url, origin=Origin(origin))
        await refused(stage.url, origin=Origin("http://localhost:5173"))
    async with gateway_stage(redis_url, model(), gateway_origins="*") as stage:
        await served(stage.url, origin=Origin(EVIL))


async def test_a_proxy_tells_the_name_by_which_it_was_reached(redis_url: str) -> None:
    forwarded = {"X-Forwarded-Host": "gw.example.org", "X-Forwarded-For": "198.51.100.7"}
    options: dict[str, Any] = {"origin": Origin("https://gw.example.org"), "additional_headers": forwarded}
    async with gateway_stage(redis_url, model()) as stage:
        await served(stage.url, **options)
    async with gateway_stage(redis_url, model(), trusted_proxies="192.0.2.1") as stage:
        await refused(stage.url, **options)


async def test_what_is_no_origin_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_GATEWAY_ORIGINS", "app.example.org")
    with pytest.raises(ConfigError, match="FLEET_GATEWAY_ORIGINS"):
        load()


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


def secure(stage: Stage) -> str:
    return f"wss://127.0.0.1:{stage.gateway.ports.tls_number}"


async def test_with_a_certificate_there_is_wss_beside_ws(redis_url: str, pki: Pki) -> None:
    async with gateway_stage(redis_url, model(), **pki.settings) as stage:
        await served(secure(stage), ssl=pki.client)
        await served(stage.url)
        with pytest.raises(ssl.SSLCertVerificationError):
            await served(secure(stage), ssl=ssl.create_default_context())
        base = secure(stage).replace("wss", "https")
        async with httpx2.AsyncClient(base_url=base, verify=pki.client, trust_env=False, timeout=PATIENCE) as http:
            assert (await http.get("/test")).status_code == 200
            assert (await http.get("/readyz")).json() == {"status": "ready"}


async def test_clients_of_both_ports_are_one_crowd(redis_url: str, pki: Pki) -> None:
    async with (
        gateway_stage(redis_url, model(), cloud_max_connections=1, **pki.settings) as stage,
        connect(secure(stage), ssl=pki.client, proxy=None, **UNHURRIED) as socket,
    ):
        assert json.loads(await socket.recv())["status"] == "connected"
        with pytest.raises(ConnectionClosed) as closed:
            await served(stage.url)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013


async def test_a_new_certificate_is_shown_while_a_client_stays(redis_url: str, pki: Pki) -> None:
    async with (
        gateway_stage(redis_url, model(), **pki.settings) as stage,
        asyncio.timeout(2 * PATIENCE),
        connect(secure(stage), ssl=pki.client, proxy=None, **UNHURRIED) as socket,
    ):
        await socket.recv()
        before = serial(socket.transport)
        pki.renew()
        shown = before
        while shown == before:
            async with connect(secure(stage), ssl=pki.client, proxy=None, **UNHURRIED) as other:
                shown = serial(other.transport)
        await socket.send('{"type": "ping"}')
        assert json.loads(await socket.recv())["type"] == "pong"


async def test_clients_behind_tls_are_told_when_the_server_goes_away(redis_url: str, pki: Pki) -> None:
    async with gateway_stage(redis_url, model(), **pki.settings) as stage:
        socket = await connect(secure(stage), ssl=pki.client, proxy=None, **UNHURRIED)
        await socket.recv()
    with pytest.raises(ConnectionClosed) as closed:
        await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001


async def test_with_tls_only_plain_connections_are_for_this_machine(redis_url: str, pki: Pki) -> None:
    everywhere = {"cloud_host": "0.0.0.0", "tls_only": True}
    async with gateway_stage(redis_url, model(), **everywhere, **pki.settings) as stage:
        await served(stage.url)
        with pytest.raises(ConnectionRefusedError):
            await served(f"ws://127.0.0.2:{stage.gateway.port}")
        unnamed = {"ssl": pki.client, "server_hostname": "127.0.0.1"}
        await served(secure(stage).replace("127.0.0.1", "127.0.0.2"), **unnamed)


async def test_a_taken_port_for_tls_is_a_clear_error(redis_url: str, pki: Pki) -> None:
    async with gateway_stage(redis_url, model(), **pki.settings) as stage:
        with pytest.raises(BaseExceptionGroup) as raised:
            async with gateway_stage(redis_url, model(), wss_port=stage.gateway.ports.tls_number, **pki.settings):
                pass
        error = single_exception(raised.value)
        assert isinstance(error, ConfigError)
        assert "FLEET_WSS_PORT" in str(error)


async def test_the_other_dialect_is_told_too_that_it_says_too_much(store: Store) -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "mcp/registerTools", "params": {"tools": []}})
    async with (
        registrar_gateway(store, model(), rate_gateway="0.001/1") as url,
        connect(url, proxy=None, **UNHURRIED) as socket,
        asyncio.timeout(PATIENCE),
    ):
        await socket.recv()
        for _ in range(2):
            await socket.send(asked)
        answers = [json.loads(await socket.recv()) for _ in range(2)]
        assert "too many messages" in json.dumps(answers[-1])
        assert answers[-1]["id"] == 7
