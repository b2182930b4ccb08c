"""Reminders that a scripted model sets, on a real Redis and Mosquitto, and what their device hears."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.tools.load import open_tools
from fleet.core.ports import CallsAsked, LlmEvent, ToolCall
from fleet.ground.settings import load
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import Scene, asks, says, stand, work
from tests.integration.worker.scripted import PATIENCE
from tests.support.mosquitto_server import MosquittoServer
from tests.support.redis_server import RedisServer

TEXT = "Take the cake out of the oven."


@asynccontextmanager
async def house(redis_url: str, broker: MosquittoServer, keys: CredentialKeys, **settings: Any) -> AsyncIterator[Scene]:
    """A device that connects to workers whose model has the tools of the server; the tests bring the workers."""
    async with stand(redis_url, broker, keys, **settings) as one, open_tools(load(tool_seconds=60)) as tools:
        one.resources = replace(one.resources, server_tools=tools)
        yield one


@pytest.fixture
async def bare(redis_url: str, own_broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Scene]:
    async with house(redis_url, own_broker, keys) as one:
        yield one


@pytest.fixture
async def stage(bare: Scene) -> AsyncIterator[Scene]:
    async with work(bare.resources, bare.broker):
        await bare.reconnect()
        yield bare


async def converse(stage: Scene, session: str, *script: list[LlmEvent]) -> str:
    """Have a turn; return what the model was told of its call, and let the edge say that the answer was spoken."""
    stage.llm.script = list(script)
    turn = await stage.utter(session, "please")
    await stage.edge.next(edge_messages.StartAnswerCommand)
    await stage.spoken()
    await stage.post(edge_messages.AnswerDoneEvent(device=stage.device.mac, session=session, turn=turn))
    return next(message.text for message in reversed(stage.llm.asked[-1][0]) if message.role == "tool")


async def remind(stage: Scene, session: str, seconds: int, call: str = "c1") -> dict[str, Any]:
    """Let the model set a reminder; return what it was told."""
    wish = asks("set_reminder", json.dumps({"text": TEXT, "in_seconds": seconds}), call)
    told: dict[str, Any] = json.loads(await converse(stage, session, wish, says("I will.")))
    return dict(told["set"])


async def make_due(stage: Scene) -> None:
    """Let the time of what the device has come now: how long a test takes until then does not matter."""
    reminders, store, mac = stage.resources.reminders, stage.resources.store, stage.device.mac
    for one in await reminders.read(mac):
        due = structs.replace(one, due=int(time.time() * 1000))
        await store.ask(store.client.hset(store.keys.reminders(mac), one.id, due.write().decode()))
    await reminders.look_again(mac)
    reminders.added.add(store.keys.shard(mac))


async def hang_up(stage: Scene, session: str) -> None:
    await stage.device.say({"type": "goodbye", "session_id": session})
    await stage.edge.until(edge_messages.CloseSessionCommand)


async def left(stage: Scene) -> list[str]:
    return [one.id for one in await stage.resources.reminders.read(stage.device.mac)]


async def until_none(stage: Scene) -> None:
    async with asyncio.timeout(PATIENCE):
        while await left(stage):
            await asyncio.sleep(0.02)


async def test_an_idle_device_is_told_what_the_model_set(stage: Scene) -> None:
    session = await stage.greet()
    told = await remind(stage, session, 36_000)
    assert told["text"] == TEXT and told["in"] in ("10 hours", "9 hours 59 minutes")
    await hang_up(stage, session)
    await make_due(stage)
    assert (await stage.device.hear_type("alert"))["message"] == f"Reminder: {TEXT}"
    await until_none(stage)


@pytest.mark.parametrize(
    ("words", "told"),
    [("十分钟后提醒我拿cake", f"提醒：{TEXT}"), ("remind me of the 蛋糕 in ten minutes", f"Reminder: {TEXT}")],
)
async def test_what_was_typed_is_told_in_its_own_language(stage: Scene, words: str, told: str) -> None:
    session, turn = await stage.greet(), secrets.token_hex(8)
    stage.llm.script = [asks("set_reminder", json.dumps({"text": TEXT, "in_seconds": 600})), says("Yes.")]
    await stage.post(edge_messages.UtteranceEvent(device=stage.device.mac, session=session, turn=turn, text=words))
    await stage.edge.next(edge_messages.StartAnswerCommand)
    await stage.spoken()
    await hang_up(stage, session)
    await make_due(stage)
    assert (await stage.device.hear_type("alert"))["message"] == told


async def test_in_a_session_it_is_spoken_and_the_model_knows_of_it_later(stage: Scene) -> None:
    session = await stage.greet()
    await remind(stage, session, 1)
    await stage.edge.until(edge_messages.StartAnswerCommand)
    assert await stage.spoken() == [f"Reminder: {TEXT}"]
    history = await stage.history(6)
    assert [message.role for message in history[-2:]] == ["user", "assistant"]
    assert history[-2].text == "(A reminder that I asked for is due.)" and TEXT in history[-1].text


async def test_the_model_lists_and_cancels_in_the_zone_of_the_device(stage: Scene) -> None:
    await Admissions(stage.resources.store).set_timezone(stage.device.mac, "Asia/Kolkata")
    session = await stage.greet()
    wish = asks("set_reminder", json.dumps({"text": TEXT, "time": "07:00", "daily": True}))
    told = json.loads(await converse(stage, session, wish, says("Yes.")))["set"]
    assert told["every_day_at"] == "07:00" and told["next"].endswith("07:00")
    listed = json.loads(await converse(stage, session, asks("list_reminders"), says("One.")))
    assert [one["id"] for one in listed["reminders"]] == [told["id"]]
    (kept,) = await stage.resources.reminders.read(stage.device.mac)
    assert kept.due % 86_400_000 == (1 * 60 + 30) * 60_000, "7:00 in India is 1:30 UTC"
    gone = json.loads(await converse(stage, session, asks("cancel_reminder", '{"id": "all"}'), says("Gone.")))
    assert gone == {"cancelled": [TEXT], "left": 0}
    assert await left(stage) == []


async def test_one_text_at_two_times_is_two_reminders_and_a_call_made_again_is_one(stage: Scene) -> None:
    session = await stage.greet()
    calls = [
        ToolCall(f"c{number}", "set_reminder", json.dumps({"text": TEXT, "in_seconds": seconds}))
        for number, seconds in enumerate((600, 1_200, 600))
    ]
    await converse(stage, session, [CallsAsked(tuple(calls))], says("I will."))
    assert len(await left(stage)) == 2


async def test_a_tool_policy_takes_the_tools_away(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with (
        house(redis_url, broker, keys, tool_policy="deny *_reminder") as bare,
        work(bare.resources, bare.broker),
    ):
        await bare.reconnect()
        session = await bare.greet()
        outcome = await converse(bare, session, asks("set_reminder", '{"text": "x"}'), says("No."))
        assert outcome.startswith("error: not done, this tool is not allowed")
        offered = {offer.name for offer in bare.llm.asked[-1][1]}
        assert offered and not {"set_reminder", "list_reminders", "cancel_reminder"} & offered


async def test_the_next_worker_tells_what_an_earlier_one_set(bare: Scene) -> None:
    async with work(bare.resources, bare.broker):
        await bare.reconnect()
        session = await bare.greet()
        await remind(bare, session, 36_000)
        await hang_up(bare, session)
    await make_due(bare)
    async with work(bare.resources, bare.broker):
        assert (await bare.device.hear_type("alert"))["message"] == f"Reminder: {TEXT}"
        await until_none(bare)


async def test_what_is_set_outlives_a_redis_that_restarts_with_its_data(
    own_redis: RedisServer, own_broker: MosquittoServer, keys: CredentialKeys, patient: None
) -> None:
    async with house(own_redis.url, own_broker, keys) as bare, work(bare.resources, bare.broker):
        await bare.reconnect()
        session = await bare.greet()
        await remind(bare, session, 36_000)
        await hang_up(bare, session)
        await asyncio.to_thread(own_redis.kill)
        await asyncio.to_thread(own_redis.start)
        await make_due(bare)
        assert (await bare.device.hear_type("alert"))["message"] == f"Reminder: {TEXT}"
        await until_none(bare)
