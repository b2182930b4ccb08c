"""The registrar dialect over the gateway's WebSocket port."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import ConnectionClosed

from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.adapters.redis.client.store import Store
from fleet.core.ports import TextDelta, ThoughtDelta
from fleet.core.situation import words_of
from fleet.ground.errors import ProviderError
from fleet.ground.tasks import running
from fleet.roles.gateway.registrar.device_connection import DeviceConnections
from fleet.wire.identity import CredentialKeys
from tests.conftest import TEST_KEYS
from tests.integration.worker.registrar import LEVEL, VOLUME, type_text
from tests.integration.worker.scene import Scene, asks, random_mac, says, stand, work
from tests.integration.worker.scripted import PATIENCE, ScriptedLlm
from tests.support.mosquitto_server import MosquittoServer
from tests.support.registrar_client import RegistrarClient, registrar_client, registrar_gateway

MAC = "AA-BB-CC-DD-EE-FF"


@pytest.fixture
async def llm() -> ScriptedLlm:
    return ScriptedLlm()


@pytest.fixture
async def client(redis_url: str, llm: ScriptedLlm) -> AsyncIterator[RegistrarClient]:
    store = await Store.open(redis_url, 16)
    try:
        async with registrar_gateway(store, llm) as url, registrar_client(url) as client:
            yield client
    finally:
        await store.close()


@pytest.mark.requirement("REG-23")
async def test_a_client_registers_types_is_called_and_hears_the_answer(
    client: RegistrarClient, llm: ScriptedLlm
) -> None:
    assert await client.register(LEVEL, mac_addr=MAC) == {
        "jsonrpc": "2.0",
        "id": "r1",
        "result": {"status": "registered", "message": "Tools were successfully registered."},
    }
    llm.script = [asks("read_level"), says("It is 5. ", "Loud enough!")]
    await client.type("how loud is it")
    call = await client.hear_call()
    assert call["params"] == {"tool_name": "read_level", "tool_input": {}}
    await client.send({"id": call["id"], "result": 5})
    said = await client.hear_messages()
    assert said == [("chunk", "It is 5."), ("chunk", " Loud enough!"), ("final", "It is 5. Loud enough!")]
    assert llm.asked[1][0][-1].text == "5"


@pytest.mark.requirement("REG-23")
async def test_the_next_text_knows_the_one_before_and_a_second_registration_replaces_the_first(
    client: RegistrarClient, llm: ScriptedLlm
) -> None:
    await client.register(LEVEL)
    await client.register(VOLUME)
    llm.script = [says("A."), says("B.")]
    for text in ("one", "two"):
        await client.type(text)
        await client.hear_messages()
    assert [words_of(message.text) for message in llm.asked[1][0][1:]] == ["one", "A.", "two"]
    assert [offer.name for offer in llm.asked[1][1]] == ["amplify_volume"]


@pytest.mark.requirement("REG-17")
@pytest.mark.requirement("REG-18")
async def test_a_control_is_not_waited_for_and_its_failure_is_told_later(
    client: RegistrarClient, llm: ScriptedLlm
) -> None:
    await client.register(VOLUME)
    llm.script = [asks("amplify_volume", '{"level": 3}'), says("Done."), says("I see.")]
    await client.type("quieter")
    frames = [await client.hear() for _ in range(3)]  # nobody has answered
    [call] = [frame for frame in frames if frame["method"] == "mcp/tool/execute"]
    assert [frame["params"]["content"] for frame in frames if frame is not call] == ["Done.", "Done."]
    assert llm.asked[1][0][-1].text == "success"
    await client.send({"id": call["id"], "error": {"code": -32000, "message": "the amplifier is off"}})
    await client.type("well?")
    await client.hear_messages()
    assert 'tool failed {"tool":"amplify_volume","error":"the amplifier is off"}' in llm.asked[2][0][-1].text


@pytest.mark.requirement("REG-13")
async def test_an_error_of_a_query_reaches_the_model(client: RegistrarClient, llm: ScriptedLlm) -> None:
    await client.register(LEVEL)
    llm.script = [asks("read_level"), says("Sorry.")]
    await client.type("how loud is it")
    call = await client.hear_call()
    await client.send({"id": call["id"], "error": {"code": -32050, "message": "no amplifier"}})
    await client.hear_messages()
    assert llm.asked[1][0][-1].text == "error: no amplifier"


@pytest.mark.requirement("REG-14")
async def test_thoughts_and_apologies_are_messages(client: RegistrarClient, llm: ScriptedLlm) -> None:
    await client.register()
    llm.script = [[ThoughtDelta("Hm."), TextDelta("Yes.")], [ProviderError("down", retryable=False)]]
    await client.type("really?")
    assert await client.hear_messages() == [("thought", "Hm."), ("chunk", "Yes."), ("final", "Yes.")]
    await client.type("really?")
    assert await client.hear_messages() == [("final", "Sorry, I cannot answer right now.")]


@pytest.mark.requirement("REG-10")
async def test_bad_frames_are_answered_with_errors(client: RegistrarClient) -> None:
    await client.register()
    for frame, code in (("{", -32700), ("[]", -32600), ('{"type":"text_input"}', -32600)):
        await client.send(frame)
        assert (await client.hear())["error"]["code"] == code
    await client.send({"method": "mcp/unknown", "id": 4})
    assert (await client.hear())["error"]["code"] == -32601
    await client.send({"id": "call-1", "result": 1})
    assert (await client.register(number=5))["id"] == 5


@pytest.mark.requirement("REG-24")
async def test_a_mac_without_proof_is_nobodys(client: RegistrarClient, redis_url: str, llm: ScriptedLlm) -> None:
    assert "result" in await client.register(LEVEL, mac_addr=MAC)
    store = await Store.open(redis_url, 16)
    assert await store.client.keys("*aa:bb:cc:dd:ee:ff*") == []
    await store.close()
    refused = await client.register(LEVEL, mac_addr=MAC, auth={"username": "device.new", "password": "x"})
    assert refused["error"]["code"] == -32000


@pytest.fixture
async def house(redis_url: str, broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[tuple[Scene, str]]:
    """A worker, and a gateway at which clients can be devices."""
    async with stand(redis_url, broker, keys) as one, work(one.resources, broker):
        lines = DeviceConnections(parse_mqtt_url(broker.url), keys, one.resources.store).connect
        async with registrar_gateway(one.resources.store, one.llm, lines) as url:
            yield one, url


def login(keys: CredentialKeys, mac: str) -> dict[str, str]:
    found = keys.issue("device", mac)
    return {"username": found.username, "password": found.password}


@pytest.mark.requirement("REG-24")
async def test_a_client_with_a_devices_credentials_is_that_device(
    house: tuple[Scene, str], keys: CredentialKeys
) -> None:
    stage, url = house
    mac = stage.device.mac
    async with registrar_client(url) as client:
        confirmed = await client.register(LEVEL, mac_addr=mac, auth=login(keys, mac))
        assert confirmed["result"]["status"] == "registered"
        record = await stage.resources.devices.read(mac)
        assert (record.online, record.dialect) == (True, "registrar")
        stage.llm.script = [asks("read_level"), says("It is 5."), says("Hello.")]
        await type_text(stage, "how loud is it")  # as the api posts it
        call = await client.hear_call()
        await client.send({"id": call["id"], "result": 5})
        assert await client.hear_messages() == [("chunk", "It is 5."), ("final", "It is 5.")]
        await client.type("hello")
        assert (await client.hear_messages())[-1] == ("final", "Hello.")
        assert [words_of(message.text) for message in stage.llm.asked[2][0][1:2]] == ["how loud is it"]
    async with asyncio.timeout(PATIENCE):
        while (await stage.resources.devices.read(mac)).online:
            await asyncio.sleep(0.01)


@pytest.mark.requirement("REG-24")
async def test_wrong_credentials_make_nobody_a_device(house: tuple[Scene, str], keys: CredentialKeys) -> None:
    stage, url = house
    mac = random_mac()  # of which no bootstrap tells
    foreign, service = login(keys, random_mac()), keys.issue("service", "fleet-x")
    async with registrar_client(url) as client:
        for auth in (
            foreign,
            {"username": "device.new", "password": ""},
            {"username": service.username, "password": service.password},
        ):
            refused = await client.register(LEVEL, mac_addr=mac, auth=auth)
            assert refused["error"]["code"] == -32000
        assert (await client.register(LEVEL, auth=foreign))["error"]["code"] == -32000
        assert (await client.register(LEVEL, mac_addr=mac, auth="x"))["error"]["code"] == -32602
    assert await stage.resources.devices.known(mac) is None


@pytest.mark.requirement("REG-24")
async def test_a_client_whose_device_connects_elsewhere_is_cut_off(
    house: tuple[Scene, str], keys: CredentialKeys
) -> None:
    stage, url = house
    async with registrar_client(url) as client:
        await client.register(LEVEL, mac_addr=stage.device.mac, auth=login(keys, stage.device.mac))
        await stage.reconnect()
        with pytest.raises(ConnectionClosed):
            while True:
                await client.hear_any()


@pytest.mark.requirement("REG-24")
async def test_a_client_whose_credentials_count_no_longer_is_cut_off_and_comes_back_with_newer_ones(
    redis_url: str, broker: MosquittoServer
) -> None:
    # Keys of its own: a front's broker lets these clients in, and only the gateway knows who may not.
    keys = CredentialKeys(TEST_KEYS)
    async with stand(redis_url, broker, keys) as one, work(one.resources, broker):
        mac, store = one.device.mac, one.resources.store
        lines = DeviceConnections(parse_mqtt_url(broker.url), keys, store)
        watch = AccessWatch(store, keys, expel=lines.expel)
        async with registrar_gateway(store, one.llm, lines.connect) as url, running("access", watch.run):
            async with registrar_client(url) as client:
                await client.register(LEVEL, mac_addr=mac, auth=login(keys, mac))
                await Revocations(store).require(mac, 2)
                with pytest.raises(ConnectionClosed):
                    while True:
                        await client.hear_any()
            newer = keys.issue("device", mac, policy="first", generation=2)
            async with registrar_client(url) as client:
                refused = await client.register(LEVEL, mac_addr=mac, auth=login(keys, mac))
                assert refused["error"]["code"] == -32000
                auth = {"username": newer.username, "password": newer.password}
                assert "result" in await client.register(LEVEL, mac_addr=mac, auth=auth)


@pytest.mark.requirement("REG-24")
async def test_the_password_goes_no_further_than_to_the_broker(
    house: tuple[Scene, str], keys: CredentialKeys, caplog: pytest.LogCaptureFixture
) -> None:
    stage, url = house
    auth = login(keys, stage.device.mac)
    async with registrar_client(url) as client:
        with caplog.at_level("DEBUG"):
            await client.register(LEVEL, mac_addr=stage.device.mac, auth=auth)
    assert auth["password"] not in "".join(str(vars(record)) for record in caplog.records)
