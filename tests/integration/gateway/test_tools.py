import asyncio
from typing import Any

from fleet.core.server_tools import Caller, Persona, ServerResult
from tests.support.gateway_stage import PATIENCE, Client, Frame, OwnTools, ScriptedModel, asks, gateway_stage, says


async def callbacks(client: Client, count: int) -> dict[str, Frame]:
    """Return the next callbacks by their tools."""
    return {frame["tool_name"]: frame for frame in [await client.until("tool_callback") for _ in range(count)]}


async def test_registration_is_answered_tool_by_tool(redis_url: str) -> None:
    good = {"description": "d", "parameters": {"type": "object", "properties": {}}}
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        tools: list[Any] = [
            {"name": "device.light.on", **good},
            {"name": "device.light.on", **good},
            {"name": "1tool", **good},
            {"name": "bad", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "int"}}}},
            "no tool",
        ]
        await client.send("register_tools", tools=tools)
        reply = await client.next()
        assert (reply["type"], reply["count"]) == ("tools_registered", 1)
        assert [tool["status"] for tool in reply["tools"]] == ["registered", "failed", "failed", "failed", "failed"]
        assert reply["tools"][0] == {"name": "device.light.on", "status": "registered"}
        assert reply["tools"][1]["error"] == "Tool name already exists"
        assert [tool.get("code") for tool in reply["tools"]] == [
            None,
            *["TOOL_REGISTRATION_FAILED"] * 2,
            "INVALID_TOOL_PARAMETERS",
            "TOOL_REGISTRATION_FAILED",
        ]
        again = await client.register("device.light.on", "two")
        assert (again["count"], again["tools"][0]["status"]) == (1, "failed")


async def test_at_most_so_many_tools_are_registered(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        reply = await client.register(*(f"tool_{number}" for number in range(40)))
        assert reply["count"] == 32
        assert [tool["status"] for tool in reply["tools"]] == ["registered"] * 32 + ["failed"] * 8
        await client.send("register_tools", tools=["x"] * 300)
        assert (await client.next())["code"] == "TOOL_REGISTRATION_FAILED"


async def test_tools_may_be_disabled(redis_url: str) -> None:
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model, client_tools_enabled=False) as stage, stage.client() as client:
        await client.send("register_tools", tools=[])
        assert (await client.next())["code"] == "TOOL_REGISTRATION_FAILED"


async def test_client_tool_is_called_back_by_its_dotted_name(redis_url: str) -> None:
    model = ScriptedModel(asks(("device_get_battery", {"of": "me"})), says("It is 85%."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.register("device.get_battery", of={"type": "string"})
        await client.send("text_input", text="battery?")
        status = await client.until("status")
        assert status["status"] == "processing"
        waiting = await client.next()
        assert (waiting["status"], waiting["data"]) == ("waiting_for_tools", {"pending_tools": 1})
        callback = await client.next()
        assert callback["type"] == "tool_callback"
        assert (callback["tool_name"], callback["arguments"]) == ("device.get_battery", {"of": "me"})
        await client.send("tool_result", call_id=callback["call_id"], result={"level": 85}, success=True, error=None)
        answer = await client.answer()
        assert answer["content"] == "It is 85%."
        assert answer["tool_calls"] == [{"tool_name": "device.get_battery", "arguments": {"of": "me"}, "success": True}]
        assert model.told() == ["battery?", "", '{"level":85}']
        assert [offer.name for offer in model.asked[0][1]] == ["device_get_battery"]


async def test_server_tools_run_before_the_client_is_called_back(redis_url: str) -> None:
    go = asyncio.Event()
    tools = OwnTools({"play_music": lambda *_: ServerResult({"status": "playing"})}, {"play_music": go})
    model = ScriptedModel(asks(("set_volume", {}), ("play_music", {"song": "x"})), says("Done."))
    async with gateway_stage(redis_url, model, tools) as stage, stage.client() as client:
        await client.register("set_volume")
        await client.send("text_input", text="music")
        await client.until("status")
        await client.silence()
        go.set()
        call = await client.next()
        assert call["type"] == "tool_call"
        assert (call["tool_name"], call["arguments"], call["result"]) == (
            "play_music",
            {"song": "x"},
            {"status": "playing"},
        )
        assert call["success"] is True
        assert isinstance(call["duration_ms"], float)
        assert (await client.next())["data"] == {"pending_tools": 1}
        callback = await client.next()
        await client.send("tool_result", call_id=callback["call_id"], result=None, success=True)
        assert (await client.answer())["content"] == "Done."
        assert model.told()[2:] == ["null", '{"status":"playing"}']


async def test_several_callbacks_are_open_at_once_and_answered_in_any_order(redis_url: str) -> None:
    model = ScriptedModel(asks(("one", {}), ("two", {}), ("three", {})), says("Done."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.register("one", "two", "three")
        await client.send("text_input", text="all")
        calls = await callbacks(client, 3)
        assert [f["data"] for f in client.heard if f.get("status") == "waiting_for_tools"] == [{"pending_tools": 3}]
        for name in ("three", "one", "two"):
            await client.send("tool_result", call_id=calls[name]["call_id"], result=name, success=True)
        await client.answer()
        assert model.told()[2:] == ["one", "two", "three"]


async def test_callbacks_beyond_the_queue_wait_for_their_place(redis_url: str) -> None:
    model = ScriptedModel(asks(*((f"tool_{n}", {}) for n in range(3))), says("Done."))
    async with gateway_stage(redis_url, model, client_tool_result_queue_size=2) as stage, stage.client() as client:
        await client.register(*(f"tool_{n}" for n in range(3)))
        await client.send("text_input", text="all")
        calls = await callbacks(client, 2)
        await client.silence()
        for call in calls.values():
            await client.send("tool_result", call_id=call["call_id"], result=1, success=True)
        (last,) = (await callbacks(client, 1)).values()
        told = [frame["data"]["pending_tools"] for frame in client.heard if frame.get("status") == "waiting_for_tools"]
        assert told == [2, 1]
        await client.send("tool_result", call_id=last["call_id"], result=1, success=True)
        assert (await client.answer())["type"] == "llm_response"


async def test_failed_client_tool_ends_the_request_after_the_others_have_answered(redis_url: str) -> None:
    model = ScriptedModel(asks(("one", {}), ("two", {})), says("Never said."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.register("one", "two")
        await client.send("text_input", text="both")
        calls = await callbacks(client, 2)
        await client.send("tool_result", call_id=calls["one"]["call_id"], success=False, error="设备连接超时")
        await client.silence()
        await client.send("tool_result", call_id=calls["two"]["call_id"], result=1, success=True)
        error = await client.answer()
        assert (error["code"], error["message"]) == ("TOOL_EXECUTION_FAILED", "Tool execution failed")
        assert "设备连接超时" in error["details"]
        await client.silence()
        assert len(model.asked) == 1


async def test_silent_client_tool_is_a_timeout_and_its_late_result_is_refused(redis_url: str) -> None:
    model = ScriptedModel(asks(("open_door", {})), says("A."))
    async with gateway_stage(redis_url, model, client_tool_timeout=0.2) as stage, stage.client() as client:
        await client.register("open_door")
        await client.send("text_input", text="open")
        callback = await client.until("tool_callback")
        error = await client.answer()
        assert (error["code"], error["message"]) == ("TOOL_RESULT_TIMEOUT", "Tool execution timeout")
        assert "open_door" in error["details"]
        await client.send("tool_result", call_id=callback["call_id"], result=1, success=True)
        assert (await client.next())["code"] == "INVALID_MESSAGE"
        assert (await client.say("hi"))["content"] == "A."


async def test_result_counts_once_and_only_from_the_client_that_was_asked(redis_url: str) -> None:
    model = ScriptedModel(asks(("one", {}), ("two", {})), says("Done."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client, stage.client() as stranger:
        await client.register("one", "two")
        await client.send("text_input", text="go")
        calls = await callbacks(client, 2)
        first, second = (calls[name]["call_id"] for name in ("one", "two"))
        await stranger.send("tool_result", call_id=first, result="forged", success=True)
        assert (await stranger.next())["code"] == "INVALID_MESSAGE"
        for _ in range(2):
            await client.send("tool_result", call_id=first, result="true", success=True)
        assert (await client.next())["code"] == "INVALID_MESSAGE"
        await client.send("tool_result", call_id=second, result="too", success=True)
        await client.answer()
        assert model.told()[2:] == ["true", "too"]


async def test_slow_server_tool_ends_the_request(redis_url: str) -> None:
    tools = OwnTools({"slow": lambda *_: ServerResult(1)}, {"slow": asyncio.Event()})
    model = ScriptedModel(asks(("slow", {}), ("mine", {})), says("Never said."))
    async with gateway_stage(redis_url, model, tools, tool_seconds=0.2) as stage, stage.client() as client:
        await client.register("mine")
        error = await client.say("go")
        assert error["code"] == "TOOL_EXECUTION_FAILED"
        kinds = [frame["type"] for frame in client.heard]
        assert "tool_callback" not in kinds[2:], "nothing happens at the client once the request is lost"
        (call,) = [frame for frame in client.heard if frame["type"] == "tool_call"]
        assert call["success"] is False


async def test_failed_server_tool_is_told_to_the_model(redis_url: str) -> None:
    tools = OwnTools({"weather": lambda *_: ServerResult("offline", failed=True)})
    model = ScriptedModel(asks(("weather", {})), says("I cannot tell."))
    async with gateway_stage(redis_url, model, tools) as stage, stage.client() as client:
        assert (await client.say("weather?"))["content"] == "I cannot tell."
        (call,) = [frame for frame in client.heard if frame["type"] == "tool_call"]
        assert (call["success"], call["result"]) == (False, {"error": "offline"})
        assert model.told()[-1] == "error: offline"


async def test_unknown_tool_ends_the_request_before_any_call(redis_url: str) -> None:
    model = ScriptedModel(asks(("mine", {}), ("nobodys", {})), says("Never said."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.register("mine")
        error = await client.say("go")
        assert error["code"] == "TOOL_NOT_FOUND"
        assert "nobodys" in error["details"]
        assert not [frame for frame in client.heard if frame["type"] == "tool_callback"]


async def test_bad_arguments_are_asked_for_again_once(redis_url: str) -> None:
    bad, good = asks(("mine", "{no json")), asks(("mine", {}))
    model = ScriptedModel(bad, good, says("Done."), bad, bad, says("Never said."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.register("mine")
        await client.send("text_input", text="go")
        callback = await client.until("tool_callback")
        await client.send("tool_result", call_id=callback["call_id"], result=1, success=True)
        assert (await client.answer())["content"] == "Done."
        assert (await client.say("again"))["code"] == "INVALID_TOOL_PARAMETERS"


async def test_client_that_leaves_during_a_callback_ends_its_turn(redis_url: str) -> None:
    model = ScriptedModel(asks(("mine", {})), says("Never said."))
    async with gateway_stage(redis_url, model) as stage:
        async with stage.client() as client:
            await client.register("mine")
            await client.send("text_input", text="go")
            await client.until("tool_callback")
        async with asyncio.timeout(PATIENCE):
            while stage.gateway._connections:
                await asyncio.sleep(0.02)
        assert len(model.asked) == 1


async def test_tools_end_with_their_connection(redis_url: str) -> None:
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model) as stage:
        async with stage.client() as client:
            await client.register("mine")
        async with stage.client() as again:
            await again.say("go", session_id=client.session)
            assert model.asked[-1][1] == ()


async def test_clients_own_tool_hides_the_servers_of_that_name(redis_url: str) -> None:
    tools = OwnTools({"get_location": lambda *_: ServerResult("server"), "other": lambda *_: ServerResult(1)})
    model = ScriptedModel(asks(("get_location", {})), says("There."))
    async with gateway_stage(redis_url, model, tools) as stage, stage.client() as client:
        assert (await client.register("get_location"))["count"] == 1
        await client.send("text_input", text="where")
        callback = await client.until("tool_callback")
        await client.send("tool_result", call_id=callback["call_id"], result="client", success=True)
        await client.answer()
        assert [offer.name for offer in model.asked[0][1]] == ["get_location", "other"]
        assert tools.calls == []


async def test_names_stay_apart_where_the_model_would_see_one(redis_url: str) -> None:
    tools = OwnTools({"a_b": lambda *_: ServerResult("server")})
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model, tools) as stage, stage.client() as client:
        await client.register("a.b")
        await client.say("hi")
        names = [offer.name for offer in model.asked[0][1]]
        assert len(set(names)) == 2
        model.scripts = [asks(*((name, {}) for name in names)), says("Done.")]
        await client.send("text_input", text="both")
        callback = await client.until("tool_callback")
        assert callback["tool_name"] == "a.b"
        await client.send("tool_result", call_id=callback["call_id"], result=1, success=True)
        await client.answer()
        assert [name for name, _, _ in tools.calls] == ["a_b"]


async def test_persona_changes_what_the_model_is_told_and_stays_with_the_session(redis_url: str) -> None:
    def speak(arguments: dict[str, Any], caller: Caller) -> ServerResult:
        caller.persona = Persona(language="ja")
        return ServerResult({"language": "ja"})

    tools = OwnTools({"set_response_language": speak})
    model = ScriptedModel(asks(("set_response_language", {})), says("Hai."))
    async with gateway_stage(redis_url, model, tools) as stage:
        async with stage.client() as client:
            await client.say("japanese please")
            assert "'ja'" not in model.asked[0][0][0].text
        async with stage.client() as again:
            await again.say("and now?", session_id=client.session)
            assert "Answer in 'ja'" in model.asked[-1][0][0].text
        async with stage.client() as other:
            await other.say("hello")
            assert "'ja'" not in model.asked[-1][0][0].text


async def test_server_tools_may_be_switched_off(redis_url: str) -> None:
    tools = OwnTools({"other": lambda *_: ServerResult(1)})
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model, tools, mcp_enabled=False) as stage, stage.client() as client:
        await client.say("hi")
        assert model.asked[0][1] == ()


async def test_a_call_waits_for_the_yes_of_the_users_next_text(redis_url: str) -> None:
    model = ScriptedModel(asks(("open_door", {})), says("It is open."), asks(("open_door", {})), says("Fine."))
    async with gateway_stage(redis_url, model, tool_policy="ask open_*") as stage, stage.client() as client:
        await client.register("open_door")
        assert "Please say yes or no." in (await client.say("open the door"))["content"]
        await client.send("text_input", text="Yes, please")
        callback = await client.until("tool_callback")
        await client.send("tool_result", call_id=callback["call_id"], result="open", success=True)
        assert (await client.answer())["content"] == "It is open."
        assert model.told()[-1] == "open"
        assert "Please say yes or no." in (await client.say("once more"))["content"]
        assert (await client.say("yes, but not now"))["content"] == "Fine."
        assert sum(frame["type"] == "tool_callback" for frame in client.heard) == 1
