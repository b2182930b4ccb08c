"""What a device remembers of its users beyond the history."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from fleet.core.ports import LlmEvent
from fleet.ground.errors import ProviderError
from fleet.roles.worker.turns import remembering
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import Scene, asks, says, stand, work
from tests.integration.worker.scripted import PATIENCE
from tests.support.mosquitto_server import MosquittoServer

NAME = "The user is called Anna."


@pytest.fixture
async def bare(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    monkeypatch.setattr(remembering, "CHECK_SECONDS", 0.05)
    async with stand(redis_url, broker, keys, memory="on") as one:
        yield one


@pytest.fixture
async def stage(bare: Scene) -> AsyncIterator[Scene]:
    async with work(bare.resources, bare.broker):
        await bare.reconnect()
        yield bare


def changes(*add: str, remove: tuple[int, ...] = ()) -> list[LlmEvent]:
    return says(json.dumps({"add": add, "remove": remove}, ensure_ascii=False))


async def converse(stage: Scene, said: str, *script: object) -> None:
    """Have one turn in a new session, and end the session; the script plays on after the turn."""
    session = await stage.greet()
    stage.llm.script = list(script)  # type: ignore[arg-type]
    await stage.utter(session, said)
    await stage.edge.next(edge_messages.StartAnswerCommand)
    await stage.spoken()
    await stage.device.say({"type": "goodbye", "session_id": session})
    await stage.edge.until(edge_messages.CloseSessionCommand)
    await hurry(stage)


async def hurry(stage: Scene) -> None:
    """Let the conversation be due now."""
    keys = stage.resources.store.keys
    waiting = keys.conversations(keys.shard(stage.device.mac))
    await stage.resources.store.client.zadd(waiting, {stage.device.mac: 1}, xx=True)


async def facts(stage: Scene) -> tuple[str, ...]:
    assert stage.resources.memories is not None
    return await stage.resources.memories.read(stage.device.mac)


async def until_asked(stage: Scene, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(stage.llm.asked) < count:
            await asyncio.sleep(0.01)


async def until_known(stage: Scene, *wanted: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await facts(stage) != wanted:
            await asyncio.sleep(0.01)


async def until_settled(stage: Scene) -> None:
    """Wait until no conversation is to be remembered."""
    keys = stage.resources.store.keys
    async with asyncio.timeout(PATIENCE):
        while await stage.resources.store.client.zcard(keys.conversations(keys.shard(stage.device.mac))):
            await asyncio.sleep(0.01)


async def test_what_was_said_in_one_conversation_the_model_knows_in_the_next(stage: Scene) -> None:
    await converse(stage, "I am Anna", says("Hello Anna."), changes(NAME))
    await until_known(stage, NAME)
    _, request = stage.llm.asked[1][0]
    assert json.loads(request.text)["conversation"] == [{"user": "I am Anna"}, {"assistant": "Hello Anna."}]
    assert stage.llm.asked[1][1] == (), "no tools"
    await converse(stage, "who am I", says("Anna."), changes("Anna likes tea.", remove=(1,)))
    assert f"- {NAME}" in stage.llm.asked[2][0][0].text.splitlines()
    await until_known(stage, "Anna likes tea.")
    _, request = stage.llm.asked[3][0]
    assert json.loads(request.text) == {
        "facts": {"1": NAME},
        "conversation": [{"user": "who am I"}, {"assistant": "Anna."}],
    }
    await until_settled(stage)
    assert len(stage.llm.asked) == 4


@pytest.mark.parametrize(
    "answer",
    [
        says("Sure! I will remember that."),
        says('{"add": ["x"], "remove": [1], "and": 1}'),
        says('{"add": [], "remove": [1, 2]}'),
        says(json.dumps({"add": [f"fact {number}" for number in range(50)], "remove": []})),
        says("x" * 20_000, '{"add": [], "remove": [1]}'),
        [ProviderError("down", retryable=False)],
        [],
    ],
)
async def test_an_answer_that_is_odd_or_fails_leaves_the_facts_and_is_asked_for_once_more(
    stage: Scene, answer: list[LlmEvent]
) -> None:
    await converse(stage, "I am Anna", says("Hello Anna."), changes(NAME))
    await until_known(stage, NAME)
    await converse(stage, "well", says("Yes."), answer, answer)
    for attempt in (1, 2):
        await until_asked(stage, 3 + attempt)
        await hurry(stage)
    await until_settled(stage)
    assert len(stage.llm.asked) == 5
    assert await facts(stage) == (NAME,)


async def test_a_fact_is_remembered_and_forgotten_at_once(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [asks("remember", json.dumps({"fact": NAME})), says("Yes.")]
    await stage.utter(session, "记住我叫Anna")
    await stage.spoken()
    assert await facts(stage) == (NAME,)
    stage.llm.script = [asks("forget", json.dumps({"fact": NAME})), says("Yes.")]
    await stage.utter(session, "forget my name")
    await stage.spoken()
    assert NAME in stage.llm.asked[2][0][0].text
    assert NAME not in stage.llm.asked[-2][0][-1].text
    assert await facts(stage) == ()


async def test_another_device_knows_nothing_of_it(stage: Scene) -> None:
    await converse(stage, "I am Anna", says("Hello Anna."), changes(NAME))
    await until_known(stage, NAME)
    stage.device = await stage.another_device()
    await converse(stage, "who am I", says("I do not know."), changes())
    assert NAME not in stage.llm.asked[2][0][0].text
    await until_settled(stage)
    assert await facts(stage) == ()


async def test_a_conversation_whose_worker_died_is_remembered_by_the_next_one(bare: Scene) -> None:
    async with work(bare.resources, bare.broker):
        await bare.reconnect()
        await converse(bare, "I am Anna", says("Hello Anna."), [asyncio.Event()])
        await until_asked(bare, 2)
    # It would be due again a while after the first worker had claimed it.
    await hurry(bare)
    bare.llm.script = [changes(NAME)]
    async with work(bare.resources, bare.broker):
        await until_known(bare, NAME)
        await until_settled(bare)
    assert len(bare.llm.asked) == 3


async def test_of_many_conversations_few_are_remembered_at_once(stage: Scene) -> None:
    gate = asyncio.Event()
    count = remembering.AT_ONCE + 3
    for number in range(count):
        stage.device = await stage.another_device()
        session = await stage.greet()
        stage.llm.script = [says("Yes.")]
        await stage.utter(session, f"I am number {number}")
        await stage.edge.next(edge_messages.StartAnswerCommand)
        await stage.spoken()
    stage.llm.script = [[gate, *changes()] for _ in range(count)]
    for device in stage.opened:
        stage.device = device
        await hurry(stage)
    await until_asked(stage, count + remembering.AT_ONCE)
    store = stage.resources.store
    for _ in range(5):
        await asyncio.sleep(remembering.CHECK_SECONDS)
        assert len(stage.llm.asked) == count + remembering.AT_ONCE
    gate.set()
    async with asyncio.timeout(PATIENCE):
        while await store.client.zcard(store.keys.conversations(0)) + await store.client.zcard(
            store.keys.conversations(1)
        ):
            await asyncio.sleep(0.01)
    assert len(stage.llm.asked) == 2 * count


async def test_without_the_setting_nothing_is_asked_noted_or_offered(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with stand(redis_url, broker, keys) as stage, work(stage.resources, broker):
        await stage.reconnect()
        store = stage.resources.store
        await store.client.rpush(store.keys.memory(stage.device.mac), NAME)
        await converse(stage, "I am Anna", says("Hello."))
        assert not await store.client.exists(store.keys.conversation(stage.device.mac))
        [(prompt, offers)] = stage.llm.asked
        assert NAME not in prompt[0].text
        assert not offers
