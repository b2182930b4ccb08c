import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest

from fleet.core.ports import TextDelta
from fleet.ground.errors import ProviderError, ProviderTimeout
from tests.support.gateway_stage import PATIENCE, ScriptedModel, gateway_stage, says

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_client_is_greeted_with_a_short_secret_session_id(redis_url: str) -> None:
    model = ScriptedModel(says("Hi."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as one, stage.client() as two:
        greeting = one.heard[0]
        assert greeting["type"] == "status"
        assert greeting["status"] == "connected"
        assert STAMP.fullmatch(greeting["timestamp"])
        assert re.fullmatch("[0-9a-f]{32}", one.session)
        assert one.session != two.session


async def test_text_is_answered_once_between_processing_and_idle(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("**Hello** 😀 there!"))) as stage, stage.client() as client:
        answer = await client.say("hello")
        assert answer["content"] == "Hello there!"
        assert answer["tool_calls"] == []
        assert answer["is_final"] is True
        assert STAMP.fullmatch(answer["timestamp"])
        kinds = [(frame["type"], frame.get("status")) for frame in client.heard[1:]]
        assert kinds == [("status", "processing"), ("status", "idle"), ("llm_response", None)]
        await client.silence()


async def test_nothing_is_sent_between_configure_and_tools_registered(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("Hi."))) as stage, stage.client() as client:
        await client.send("configure", enable_context=True, temperature=0.2, max_tokens=100)
        await client.send("register_tools", tools=[])
        assert (await client.next())["type"] == "tools_registered"


async def test_configuration_reaches_the_model_within_its_limits(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("Hi."))) as stage, stage.client() as client:
        await client.say("one")
        await client.send("configure", temperature=0.2, max_tokens=100_000)
        await client.say("two")
        await client.send("configure", temperature=1.5, max_tokens=7)
        assert (await client.next())["code"] == "INVALID_MESSAGE"
        await client.say("three")
        asked = [(options.temperature, options.max_tokens) for _, _, options in stage.model.asked]
        assert asked == [(0.7, 2048), (0.2, 2048), (0.2, 2048)]


async def test_history_is_given_only_where_it_is_wanted(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        await client.say("one")
        await client.say("two", session_id=client.session)
        assert stage.model.told() == ["two"]
        await client.send("configure", enable_context=True)
        await client.say("three")
        assert stage.model.told() == ["one", "A.", "two", "A.", "three"]
        for _ in range(6):
            await client.say("more")
        assert len(stage.model.told()) == 11, "ten of the history and the question"
        await client.send("configure", enable_context=False)
        await client.say("four")
        assert stage.model.told() == ["four"]


async def test_a_turn_reads_its_session_and_its_agent_once_and_writes_once(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        await client.say("one")
        connection = stage.sessions._store.client.pipelined
        ask, send, asked = connection.ask, connection.send, list[list[str]]()

        async def count(commands: Sequence[Sequence[Any]]) -> list[Any]:
            asked.append([str(words[0]) for words in commands])
            return await ask(commands)

        def count_one(words: Sequence[Any]) -> Any:
            asked.append([str(words[0])])
            return send(words)

        monkeypatch.setattr(connection, "ask", count)
        monkeypatch.setattr(connection, "send", count_one)
        await client.say("two")
        assert asked == [["FCALL"], ["FCALL"], ["HSET", "RPUSH", "LTRIM", "EXPIRE", "EXPIRE"]]


async def test_a_question_that_waited_knows_the_answer_before_it(redis_url: str) -> None:
    go_on = asyncio.Event()
    async with gateway_stage(redis_url, ScriptedModel([go_on, TextDelta("A.")], says("B."))) as stage:
        async with stage.client() as client:
            await client.send("configure", enable_context=True)
            await client.send("text_input", text="one")
            await client.send("text_input", text="two")
            await client.send("ping")
            assert (await client.until("pong"))["type"] == "pong"
            go_on.set()
            await client.answer()
            await client.answer()
        assert stage.model.told() == ["one", "A.", "two"]


async def test_session_is_resumed_on_another_process(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("Hi Bob."))) as first, first.client() as client:
        await client.say("I am Bob")
        session = client.session
    async with gateway_stage(redis_url, ScriptedModel(says("Bob."))) as second:
        async with second.client() as client:
            await client.send("start_session", session_id=session)
            reply = await client.next()
            assert (reply["status"], reply["data"]["session_id"]) == ("connected", session)
            await client.say("Who am I?")
            assert second.model.told() == ["I am Bob", "Hi Bob.", "Who am I?"]
        async with second.client() as client:
            await client.say("And now?", session_id=session)
            assert len(second.model.told()) == 5


async def test_context_stays_off_in_a_resumed_session_where_the_client_said_so(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        await client.say("one")
        await client.send("configure", enable_context=False)
        await client.send("start_session", session_id=client.session)
        await client.next()
        await client.say("two")
        assert stage.model.told() == ["two"]


async def test_new_session_has_no_history(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        await client.send("configure", enable_context=True)
        await client.say("one")
        await client.send("start_session")
        fresh = (await client.next())["data"]["session_id"]
        assert fresh != client.session
        await client.say("two")
        assert stage.model.told() == ["two"]


async def test_unknown_ended_and_expired_sessions_are_session_errors(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        for unknown in ("f" * 32, "nothing", "{*}", "f" * 5000):
            await client.send("start_session", session_id=unknown)
            assert (await client.next())["code"] == "SESSION_ERROR"
            await client.send("text_input", text="hi", session_id=unknown)
            assert (await client.next())["code"] == "SESSION_ERROR"
        await client.send("end_session")
        ended = await client.next()
        assert (ended["status"], ended["data"]) == ("idle", {"session_id": client.session})
        await client.send("text_input", text="hi", session_id=client.session)
        assert (await client.next())["code"] == "SESSION_ERROR"


async def test_expired_session_is_a_session_error_and_a_request_without_one_begins_anew(redis_url: str) -> None:
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model, cloud_session_timeout=1000) as stage, stage.client() as client:
        record, redis = f"gw:{{{client.session}}}", stage.sessions._store.client
        assert 1000 - PATIENCE < await redis.ttl(record) <= 1000
        await redis.pexpire(record, 1)
        async with asyncio.timeout(PATIENCE):
            while await redis.exists(record):
                await asyncio.sleep(0.05)
        await client.send("start_session", session_id=client.session)
        assert (await client.next())["code"] == "SESSION_ERROR"
        await client.send("text_input", text="hi", session_id=client.session)
        assert (await client.next())["code"] == "SESSION_ERROR"
        await client.send("text_input", text="hi")
        assert (await client.next())["status"] == "connected"
        assert (await client.answer())["content"] == "A."


async def test_ending_a_session_ends_its_requests_with_an_error_each(redis_url: str) -> None:
    never = asyncio.Event()
    async with gateway_stage(redis_url, ScriptedModel([never], says("A."))) as stage, stage.client() as client:
        await client.send("text_input", text="one")
        await client.send("text_input", text="two")
        await asyncio.wait_for(stage.model.begun.wait(), PATIENCE)
        await client.send("end_session")
        frames = [await client.next() for _ in range(4)]
        assert [frame.get("code", frame.get("status")) for frame in frames] == [
            "processing",
            "SESSION_ERROR",
            "SESSION_ERROR",
            "idle",
        ]
        assert stage.model.closed.is_set()
        assert (await client.say("three"))["content"] == "A."


async def test_requests_wait_in_line_and_too_many_are_refused(redis_url: str) -> None:
    go = asyncio.Event()
    model = ScriptedModel([go, TextDelta("First.")], says("Next."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.send("text_input", text="one")
        await client.until("status")
        for number in range(9):
            await client.send("text_input", text=f"more {number}")
        refused = await client.until("error")
        assert (refused["code"], refused["message"]) == ("INTERNAL_ERROR", "Too many requests")
        go.set()
        answers = [(await client.answer())["content"] for _ in range(9)]
        assert answers == ["First.", *["Next."] * 8]
        assert [told[-1] for told in map(stage.model.told, range(9))] == ["one", *(f"more {n}" for n in range(8))]
        await client.silence()


async def test_answer_streams_in_pieces_that_make_up_the_final_one(redis_url: str) -> None:
    model = ScriptedModel([TextDelta("Well, it **is"), TextDelta("** so. And"), TextDelta(" 是的。好。")])
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.send("configure", stream=True)
        final = await client.say("tell me")
        pieces = [frame["content"] for frame in client.heard if frame.get("is_final") is False]
        assert len(pieces) > 1
        assert "".join(pieces) == final["content"] == "Well, it is so. And是的。好。".replace("And是", "And 是")
        before = len(client.heard)
        await client.send("configure", stream=False)
        await client.say("again")
        assert [frame["type"] for frame in client.heard[before:]] == ["status", "status", "llm_response"]


async def test_model_faults_are_one_error_that_does_not_tell_where_the_model_is(redis_url: str) -> None:
    faults = [
        (ProviderError("LLM http://secret:1/v1 failed (500)", retryable=True), "LLM_ERROR"),
        (ProviderTimeout("LLM http://secret:1/v1 was silent for too long", retryable=True), "TIMEOUT"),
        (RuntimeError("a fault of ours"), "INTERNAL_ERROR"),
    ]
    for fault, code in faults:
        model = ScriptedModel([TextDelta("So"), fault], says("A."))
        async with gateway_stage(redis_url, model) as stage, stage.client() as client:
            error = await client.say("hi")
            assert error["code"] == code
            assert error["details"]
            assert "secret" not in str(error)
            assert (await client.say("and now?"))["content"] == "A."


async def test_model_that_never_ends_is_a_timeout(redis_url: str) -> None:
    model = ScriptedModel([asyncio.Event()])
    async with gateway_stage(redis_url, model, seconds=0.2) as stage, stage.client() as client:
        assert (await client.say("hi"))["code"] == "TIMEOUT"
        assert model.closed.is_set()


async def test_model_without_words_is_an_error(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says(" "))) as stage, stage.client() as client:
        assert (await client.say("hi"))["code"] == "LLM_ERROR"


async def test_client_that_leaves_stops_its_turn(redis_url: str) -> None:
    model = ScriptedModel([asyncio.Event()])
    async with gateway_stage(redis_url, model) as stage:
        async with stage.client() as client:
            await client.send("text_input", text="hi")
            await asyncio.wait_for(model.begun.wait(), PATIENCE)
        await asyncio.wait_for(model.closed.wait(), PATIENCE)


async def test_bad_frames_are_answered_and_the_connection_lives(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        await client.socket.send("no json")
        assert (await client.next())["code"] == "INVALID_MESSAGE"
        await client.socket.send(b'{"type":"ping"}')
        assert (await client.next())["type"] == "pong"
        await client.send("dance")
        assert (await client.next())["code"] == "UNKNOWN_MESSAGE_TYPE"
        await client.send("text_input", text="  ")
        error = await client.next()
        assert (error["code"], error["message"]) == ("INVALID_MESSAGE", "Text cannot be empty")
        await client.send("tool_result", call_id="nobody", success=True)
        assert (await client.next())["code"] == "INVALID_MESSAGE"
        assert (await client.say("hi"))["content"] == "A."
