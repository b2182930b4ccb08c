"""Text for devices over real HTTP; who answers is scripted, the store is real."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, OperatorTokens
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.replies import Replies, Reply
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.leases import Leases
from fleet.roles.api.devices import LONGEST_TEXT
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import MAC, api_client

INPUT = f"/devices/{MAC}/input"


@pytest.fixture
def tokens(tmp_path: Path) -> OperatorTokens:
    return OperatorTokens(tmp_path / "tokens")


@pytest.fixture
async def client(
    store: Store, keys: CredentialKeys, tokens: OperatorTokens, tmp_path: Path
) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(store, keys, operator_tokens_file=tmp_path / "tokens", rate_input="0.0001/20") as client:
        client.headers["Authorization"] = f"Bearer {tokens.add('anna', frozenset({DEVICES_INPUT}))}"
        yield client


@pytest.fixture
async def online(store: Store) -> None:
    await Devices(store).appear(MAC, online=True, epoch=1)


class Worker:
    """Answers in a worker's place."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.shard = store.keys.shard(MAC)

    async def heard(self) -> UtteranceEvent:
        async with asyncio.timeout(240):
            while not (entries := await Inboxes(self._store).read_shards({self.shard: "0"})):
                await asyncio.sleep(0.01)
        (entry,) = entries
        assert isinstance(entry.event, UtteranceEvent)
        return entry.event

    async def answer(self, reply: Reply) -> None:
        owner = await Leases(self._store, "w", 600).take(self.shard)
        assert owner
        await Replies(self._store).write(owner, MAC, (await self.heard()).turn, reply)


@pytest.fixture
def worker(store: Store) -> Worker:
    return Worker(store)


@pytest.mark.requirement("REG-20")
async def test_a_text_goes_to_the_devices_shard_and_its_turn_is_named(
    client: httpx2.AsyncClient, online: None, worker: Worker
) -> None:
    answer = await client.post(INPUT, json={"text": "  turn it up \n", "language": "en"})
    assert answer.status_code == 202
    heard = await worker.heard()
    assert answer.json() == {"turn": heard.turn, "state": "accepted"}
    assert (heard.device, heard.text, heard.session, heard.language) == (MAC, "turn it up", "", "en")
    assert heard.typed
    assert heard.polite


@pytest.mark.requirement("REG-20")
async def test_who_waits_is_given_the_answer(client: httpx2.AsyncClient, online: None, worker: Worker) -> None:
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(client.post(f"{INPUT}?wait=120", json={"text": "hi", "interrupt": True}))
        heard = await worker.heard()
        assert not heard.polite
        await worker.answer(Reply("answered", "Hello."))
    assert asked.result().status_code == 200
    assert asked.result().json() == {"turn": heard.turn, "state": "answered", "text": "Hello."}
    later = await client.get(f"{INPUT}/{heard.turn}")
    assert (later.status_code, later.json()["text"]) == (200, "Hello.")


@pytest.mark.requirement("REG-20")
async def test_who_waits_in_vain_is_given_the_turn(client: httpx2.AsyncClient, online: None) -> None:
    answer = await client.post(f"{INPUT}?wait=0.1", json={"text": "hi"})
    assert (answer.status_code, answer.json()["state"]) == (202, "accepted")
    later = await client.get(f"{INPUT}/{answer.json()['turn']}")
    assert (later.status_code, later.json()) == (202, answer.json())
    assert (await client.get(f"{INPUT}/other")).status_code == 404


@pytest.mark.requirement("REG-20")
async def test_a_busy_device_is_a_conflict(client: httpx2.AsyncClient, online: None, worker: Worker) -> None:
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(client.post(f"{INPUT}?wait=120", json={"text": "hi"}))
        await worker.answer(Reply("busy"))
    assert asked.result().status_code == 409
    assert "busy" in asked.result().json()["error"]


@pytest.mark.requirement("REG-20")
async def test_what_cannot_be_reached_is_said(client: httpx2.AsyncClient, store: Store) -> None:
    unknown = await client.post(INPUT, json={"text": "hi"})
    assert (unknown.status_code, unknown.json()) == (404, {"error": "the device is unknown"})
    await Devices(store).appear(MAC, online=False, epoch=1)
    offline = await client.post(INPUT, json={"text": "hi"})
    assert (offline.status_code, offline.json()) == (409, {"error": "the device is offline"})
    assert (await client.post("/devices/nobody/input", json={"text": "hi"})).status_code == 400


@pytest.mark.requirement("REG-20")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 20_000, 400),
        (b"{}", 400),
        (b'{"text":7}', 400),
        (b'{"text":""}', 400),
        (b'{"text":" \\n "}', 400),
        (b'{"text":"hi","language":"english"}', 400),
        (b'{"text":"hi","interrupt":"yes"}', 400),
        (b'{"text":"%s"}' % (b"x" * (LONGEST_TEXT + 1)), 413),
        (b'{"text":"%s"}' % (b"x" * 1_000_000), 413),
    ],
)
async def test_wrong_bodies_are_refused(client: httpx2.AsyncClient, online: None, body: bytes, status: int) -> None:
    answer = await client.post(INPUT, content=body)
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.requirement("REG-20")
@pytest.mark.parametrize("wait", ["x", "-1", "nan", "inf", "1000", ""])
async def test_a_wrong_wait_is_refused(client: httpx2.AsyncClient, online: None, wait: str) -> None:
    assert (await client.post(f"{INPUT}?wait={wait}", json={"text": "hi"})).status_code == 400


async def test_the_longest_text_is_taken(client: httpx2.AsyncClient, online: None, worker: Worker) -> None:
    text = "好" * LONGEST_TEXT
    assert (await client.post(INPUT, json={"text": text})).status_code == 202
    assert (await worker.heard()).text == text


@pytest.mark.requirement("REG-22")
@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer flt_wrong", "Basic flt_wrong", "Bearer " + "x" * 5000])
async def test_without_a_token_nobody_enters_anything(
    client: httpx2.AsyncClient, online: None, authorization: str
) -> None:
    for answer in (
        await client.post(INPUT, json={"text": "hi"}, headers={"Authorization": authorization}),
        await client.get(f"{INPUT}/x", headers={"Authorization": authorization}),
    ):
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.requirement("REG-22")
async def test_a_token_of_another_scope_is_not_enough(
    client: httpx2.AsyncClient, online: None, tmp_path: Path, tokens: OperatorTokens
) -> None:
    file = tmp_path / "tokens"
    file.write_text(file.read_text().replace(DEVICES_INPUT, "devices:read"))
    answer = await client.post(INPUT, json={"text": "hi"})
    assert (answer.status_code, answer.json()) == (403, {"error": f"the token has not the scope {DEVICES_INPUT}"})


@pytest.mark.requirement("REG-22")
async def test_a_revoked_token_counts_no_more(
    client: httpx2.AsyncClient, online: None, tokens: OperatorTokens, tmp_path: Path
) -> None:
    assert (await client.post(INPUT, json={"text": "hi"})).status_code == 202
    tokens.remove("anna")
    assert (await client.post(INPUT, json={"text": "hi"})).status_code == 401
    (tmp_path / "tokens").write_text("junk")
    assert (await client.post(INPUT, json={"text": "hi"})).status_code == 503


@pytest.mark.requirement("REG-22")
async def test_guessing_tokens_is_slowed_down_and_entering_too_much_too(
    client: httpx2.AsyncClient, online: None
) -> None:
    seen = Counter[int]()
    for _ in range(22):
        seen[(await client.post(INPUT, json={"text": "hi"})).status_code] += 1
    assert seen == {202: 20, 429: 2}
    wrong: dict[str, Any] = {"headers": {"Authorization": "Bearer flt_wrong"}}
    async with asyncio.TaskGroup() as group:
        guesses = [group.create_task(client.get(f"{INPUT}/x", **wrong)) for _ in range(100)]
    refused = [one.result() for one in guesses if one.result().status_code == 429]
    # One may be tried again in a second, so a slow machine takes some more.
    assert refused
    assert int(refused[-1].headers["Retry-After"]) >= 1
