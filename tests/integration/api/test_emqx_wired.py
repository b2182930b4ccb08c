"""The api as the role runs it, with EMQX set up."""

from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.ground.settings import load
from fleet.run.api import api
from fleet.run.resources import ProcessResources
from fleet.wire.identity import CredentialKeys
from tests.support.emqx_requests import TOKEN, connection, login_request, rest_api

MAC = "aa:bb:cc:dd:ee:ff"


async def test_the_role_answers_logins_and_closes_who_is_revoked(store: Store) -> None:
    keys = CredentialKeys("k1:" + "e" * 32)
    async with rest_api() as emqx:
        emqx.clients = {MAC: "device.k1"}
        settings = load(
            broker_token=TOKEN,
            emqx_api_url=emqx.url,
            emqx_api_key="fleet:secret",
            http_host="127.0.0.1",
            http_port=0,
        )
        async with api(ProcessResources(settings, keys, None, store)) as server, connection(server.port) as asker:
            login = login_request(keys.issue("device", MAC))
            assert (await asker.ask(login))["result"] == "allow"
            await Revocations(store).add(MAC)
            assert await emqx.kicked() == [MAC]
            assert await asker.ask(login) == {"result": "deny"}
            await Revocations(store).remove(MAC)


async def test_without_a_token_there_is_no_such_route(store: Store, keys: CredentialKeys) -> None:
    settings = load(http_host="127.0.0.1", http_port=0)
    async with api(ProcessResources(settings, keys, None, store)) as server, connection(server.port) as asker:
        asker.send(login_request(keys.issue("device", MAC)))
        assert (await asker.answer())[0] == 404
