"""Logins of clients of an EMQX broker, asked for as EMQX asks, and its connections closed through its API."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from fleet.adapters.net.mqtt import emqx
from fleet.adapters.net.mqtt.emqx import Emqx, expelling
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.ground.tasks import running
from fleet.roles.api.mqtt_login import LARGEST_BODY, MqttLogin
from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.topics import shard_client_id, slot
from tests.support.emqx_requests import TOKEN, Connection, RestApi, connection, login_request, login_server, rest_api
from tests.support.ports import free_port

MAC = "aa:bb:cc:dd:ee:ff"
OTHER = "02:00:00:00:00:01"
KEY = "fleet:a-secret-of-emqx"
DENY = {"result": "deny"}
IGNORE = {"result": "ignore"}


@pytest.fixture
def keys() -> CredentialKeys:
    """Keys of their own: these tests change them."""
    return CredentialKeys("k1:" + "e" * 32)


@pytest.fixture
async def served(keys: CredentialKeys) -> AsyncIterator[tuple[MqttLogin, Connection]]:
    async with login_server(keys) as (route, port), connection(port) as asker:
        yield route, asker


@pytest.fixture
def asker(served: tuple[MqttLogin, Connection]) -> Connection:
    return served[1]


async def test_a_device_is_let_in_with_its_slot(asker: Connection, keys: CredentialKeys) -> None:
    assert await asker.ask(login_request(keys.issue("device", MAC))) == {
        "result": "allow",
        "is_superuser": False,
        "client_attrs": {"kind": "device", "slot": str(slot(MAC))},
    }


async def test_a_shards_session_is_let_in_as_a_service(asker: Connection, keys: CredentialKeys) -> None:
    answer = await asker.ask(login_request(keys.issue("service", shard_client_id(3))))
    assert answer == {"result": "allow", "is_superuser": False, "client_attrs": {"kind": "service"}}


async def test_requests_sent_before_earlier_answers_are_answered_in_order(
    asker: Connection, keys: CredentialKeys
) -> None:
    good, bad = keys.issue("device", MAC), Credentials(MAC, "device.k1", "x")
    asker.send(login_request(good), login_request(bad), login_request(good))
    results = [(await asker.answer())[2]["result"] for _ in range(3)]
    assert results == ["allow", "deny", "allow"]


async def test_nobody_else_is_let_in(served: tuple[MqttLogin, Connection], keys: CredentialKeys) -> None:
    route, asker = served
    mine, service = keys.issue("device", MAC), keys.issue("service", "fleet-worker")
    strangers = [
        Credentials(MAC, mine.username, "x"),
        Credentials(MAC, mine.username, ""),
        Credentials(MAC, "", mine.password),
        Credentials(MAC, "device.none", mine.password),
        Credentials(OTHER, mine.username, mine.password),
        Credentials(MAC.upper(), mine.username, mine.password),
        Credentials(MAC, service.username, service.password),
        Credentials("fleet-other", service.username, service.password),
        keys.issue("device", "fleet-worker"),
        keys.issue("service", MAC),
        Credentials(MAC, mine.username, "密码"),
        # What EMQX sends of a client that gives neither.
        Credentials(MAC, "undefined", "undefined"),
    ]
    for who in strangers:
        assert await asker.ask(login_request(who)) == DENY, who
    assert dict(route._counts) == {"mqtt login: refused": len(strangers)}


async def test_a_revoked_device_is_refused_and_an_old_key_counts_until_it_is_retired(
    asker: Connection, keys: CredentialKeys
) -> None:
    mine = keys.issue("device", MAC)
    keys.revoke([MAC])
    assert await asker.ask(login_request(mine)) == DENY
    keys.revoke([])
    text = keys.as_file()
    keys.replace(f"k9 another-key-of-this-test\n{text}")
    assert (await asker.ask(login_request(mine)))["result"] == "allow"
    keys.replace("k9 another-key-of-this-test")
    assert await asker.ask(login_request(mine)) == DENY


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"clientid":"%s","username":"x"}' % MAC.encode(),
        b'{"clientid":1,"username":true,"password":null}',
        b'{"clientid":{},"username":[],"password":{}}',
        b'{"clientid":"\\ud800","username":"device.k1","password":"\\ud800"}',
        b"[" * 5000,
        b'{"clientid":"' + b"x" * 2 * LARGEST_BODY + b'","username":"","password":""}',
    ],
)
async def test_what_is_no_login_lets_nobody_in(asker: Connection, body: bytes) -> None:
    assert await asker.ask(login_request(body)) == DENY


@pytest.mark.parametrize(
    "authorization",
    [None, "", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer é"],
)
async def test_whoever_is_not_the_broker_learns_nothing(
    served: tuple[MqttLogin, Connection], keys: CredentialKeys, authorization: str | None
) -> None:
    route, asker = served
    assert await asker.ask(login_request(keys.issue("device", MAC), authorization)) == IGNORE
    assert dict(route._counts) == {"mqtt login: wrong token": 1}


async def test_strangers_do_not_fill_the_log(keys: CredentialKeys, caplog: pytest.LogCaptureFixture) -> None:
    async with login_server(keys) as (route, port):
        for _ in range(20):
            async with connection(port) as stranger:
                assert await stranger.ask(login_request(b"{}", "Bearer wrong-token-of-nobody")) == IGNORE
    assert route._counts["mqtt login: wrong token"] == 20
    assert [record.levelname for record in caplog.records if "token" in record.message] == ["WARNING"]


def test_a_short_token_is_refused_at_the_start(keys: CredentialKeys) -> None:
    with pytest.raises(ConfigError, match="16"):
        MqttLogin(keys, "short", Counter())


@pytest.fixture(autouse=True)
def _once_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be closed once more, or asked again, however long a test takes. A test of that sets it anew."""
    monkeypatch.setattr(emqx, "AGAIN_SECONDS", 240.0)
    monkeypatch.setattr(emqx, "_REQUEST_SECONDS", 240.0)


@pytest.fixture
async def told() -> AsyncIterator[RestApi]:
    async with rest_api() as told:
        yield told


async def test_devices_are_closed_at_once_and_once_more(
    told: RestApi, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emqx, "AGAIN_SECONDS", 0.05)
    keys.revoke([MAC, OTHER])
    broker = Emqx(told.url, KEY, keys)
    async with running("emqx", broker.run):
        broker.expel([MAC, OTHER])
        assert await told.kicked() == [MAC, OTHER]
        assert await told.kicked() == [MAC, OTHER]
        broker.expel([OTHER])
        assert await told.kicked() == [OTHER]
        assert await told.kicked() == [OTHER]
    assert set(told.logins) == {f"Basic {base64.b64encode(KEY.encode()).decode()}"}
    assert told.kicks.empty()


async def test_a_long_list_is_told_in_parts(
    told: RestApi, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emqx, "_AT_ONCE", 3)
    broker = Emqx(told.url, KEY, keys)
    macs = [f"02:00:00:00:00:{number:02x}" for number in range(7)]
    keys.revoke(macs)
    async with running("emqx", broker.run):
        broker.expel(macs)
        assert [await told.kicked() for _ in range(3)] == [macs[:3], macs[3:6], macs[6:]]
        # Each waits to be closed once more.
        assert broker.waiting == 7


@pytest.mark.parametrize("answer", [401, 404, 500, 503])
async def test_what_emqx_did_not_do_is_asked_for_again(told: RestApi, keys: CredentialKeys, answer: int) -> None:
    told.answers = [answer, answer]
    keys.revoke([MAC, OTHER])
    broker = Emqx(told.url, KEY, keys)
    async with running("emqx", broker.run):
        broker.expel([MAC])
        assert await told.kicked() == [MAC]
    assert len(told.logins) == 3


async def test_an_emqx_that_is_away_is_told_when_it_is_back(
    keys: CredentialKeys, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    keys.revoke([MAC])
    broker = Emqx(f"http://127.0.0.1:{port}", KEY, keys)
    async with running("emqx", broker.run):
        broker.expel([MAC])
        async with asyncio.timeout(240):
            while "will try again" not in caplog.text:
                await asyncio.sleep(0.01)
        async with rest_api(port) as back:
            assert await back.kicked() == [MAC]
    assert KEY.partition(":")[2] not in caplog.text


async def test_revoking_a_device_closes_its_connection(store: Store, keys: CredentialKeys, told: RestApi) -> None:
    told.clients = {MAC: "device.k1"}
    async with (
        expelling(told.url, SecretStr(KEY), keys) as expel,
        running("access", AccessWatch(store, keys, expel=expel).run),
    ):
        await Revocations(store).add(MAC)
        assert await told.kicked() == [MAC]
        assert keys.verify(*_fields(keys.issue("device", MAC))) is None
    assert (await Revocations(store).remove(MAC)) is True


async def test_a_generation_that_counts_no_longer_is_closed_and_a_newer_one_goes_on(
    store: Store, keys: CredentialKeys, told: RestApi
) -> None:
    newer = "02:00:00:00:00:02"
    told.clients = {
        MAC: keys.issue("device", MAC, policy="first", generation=2).username,
        newer: keys.issue("device", newer, policy="first", generation=3).username,
        "fleet-shard-3": "service.k1",
    }
    async with (
        expelling(told.url, SecretStr(KEY), keys) as expel,
        running("access", AccessWatch(store, keys, expel=expel).run),
    ):
        for mac in (newer, MAC, OTHER):  # the last one is not connected
            await Revocations(store).require(mac, 3)
        assert await told.kicked() == [MAC]
        assert keys.verify(*_fields(keys.issue("device", MAC, policy="first", generation=2))) is None
        assert keys.verify(*_fields(keys.issue("device", MAC, policy="first", generation=3))) == "device"


@pytest.mark.parametrize("page", [1, 2, 500])
async def test_a_minimum_of_all_closes_every_older_connection(
    store: Store, keys: CredentialKeys, told: RestApi, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emqx, "_PAGE", page)
    macs = [f"02:00:00:00:00:{number:02x}" for number in range(4)]
    told.clients = {
        macs[0]: "device.k1",
        macs[1]: "device.k1.open.0",
        macs[2]: "device.k1.first.1",
        macs[3]: "",
        "fleet-worker": "service.k1",
    }
    async with (
        expelling(told.url, SecretStr(KEY), keys) as expel,
        running("access", AccessWatch(store, keys, expel=expel).run),
    ):
        await Revocations(store).require_all(1)
        assert await told.kicked() == [macs[0], macs[1], macs[3]]


async def test_without_an_emqx_nothing_is_closed(keys: CredentialKeys) -> None:
    async with expelling(None, None, keys) as expel:
        expel(frozenset([MAC]))


async def test_an_emqx_without_a_key_is_refused_at_the_start(keys: CredentialKeys) -> None:
    with pytest.raises(ConfigError, match="FLEET_EMQX_API_KEY"):
        async with expelling("http://emqx:18083", None, keys):
            pass


def _fields(who: Credentials) -> tuple[str, str, str]:
    return who.client_id, who.username, who.password


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("emqx:18083", KEY),
        ("ftp://emqx", KEY),
        ("http://", KEY),
        ("http://me:secret@emqx", KEY),
        ("http://emqx:18083", "fleet"),
        ("http://emqx:18083", ":x"),
        ("http://emqx:18083", "fleet:"),
    ],
)
def test_a_wrong_address_or_key_is_told_without_the_key(url: str, key: str, keys: CredentialKeys) -> None:
    with pytest.raises(ConfigError) as failure:
        Emqx(url, key, keys)
    assert "secret" not in str(failure.value).replace("with its secret, key:secret", "")
