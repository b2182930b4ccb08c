"""The environment variables of section 8: their defaults, and that each is obeyed."""

import asyncio
import json
import re
import subprocess
import sys

import httpx2
import pytest

from fleet.adapters.llm.model_name import DOCUMENTED
from fleet.ground.settings import Settings
from fleet.ground.settings.gateway import MAX_TOKENS, TEMPERATURE
from tests.support.gateway_client import GatewayClient, gateway_client
from tests.support.gateway_process import GatewayProcess, gateway_process
from tests.support.openai_server import Answer
from tests.support.redis_server import RedisServer
from tests.support.scripted_llm import ScriptedLlm, offers, roles, run_scripted_llm

DEFAULTS = {
    "CLOUD_HOST": "0.0.0.0",
    "CLOUD_PORT": "9400",
    "CLOUD_PING_INTERVAL": "30",
    "CLOUD_PING_TIMEOUT": "300",
    "CLOUD_MAX_CONNECTIONS": "100",
    "CLOUD_SESSION_TIMEOUT": "3600",
    "LLM_ENABLE_CONTEXT": "false",
    "MCP_ENABLED": "true",
    "MCP_SERVER_NAME": "arcs-mini-mcp-server",
    "MCP_PROTOCOL_VERSION": "2024-11-05",
    "CLIENT_TOOLS_ENABLED": "true",
    "CLIENT_TOOLS_MAX_COUNT": "32",
    "CLIENT_TOOL_TIMEOUT": "30",
    "CLIENT_TOOL_RESULT_QUEUE_SIZE": "10",
}
OWN = ("FLEET_", "CLOUD_", "LLM_", "MCP_", "CLIENT_")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `fleet settings` shows where nothing is set."""
    home = {"HOME": str(tmp_path_factory.mktemp("home")), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "fleet", "settings"]
    text = subprocess.run(command, env=home, capture_output=True, text=True, check=True, timeout=240).stdout
    return dict(line.split(" = ", 1) for line in text.splitlines() if re.match(r"\w+ = ", line))


@pytest.mark.requirement("GW-160")
@pytest.mark.parametrize("variable", DEFAULTS)
def test_every_variable_has_the_documents_default(shown: dict[str, str], variable: str) -> None:
    assert shown[variable] == DEFAULTS[variable]


@pytest.mark.requirement("GW-123", "GW-160")
def test_the_model_has_the_documents_defaults() -> None:
    assert (DOCUMENTED, Settings.model_fields["llm_timeout"].default, TEMPERATURE, MAX_TOKENS) == (
        "Qwen3-30B-A3B",
        120,
        0.7,
        2048,
    )


@pytest.mark.requirement("GW-170")
async def test_the_test_client_is_served_beside_the_api(gateway: GatewayProcess) -> None:
    async with httpx2.AsyncClient(timeout=240) as http:
        page = await http.get(f"http://127.0.0.1:{gateway.port}/test")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "WebSocket" in page.text
    assert "http://" not in page.text.replace("http://www.w3.org", "").replace("http://localhost", "")


@pytest.mark.requirement("GW-161")
async def test_a_gateway_runs_alone(gateway: GatewayProcess, client: GatewayClient) -> None:
    """`gateway` has the model's address and a port, and nothing else."""
    assert "一个人" in (await client.turn("一个人")).content
    assert gateway.alive


@pytest.mark.requirement("GW-162")
async def test_the_models_settings_reach_the_model(unusual: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(unusual.url) as client:
        await client.turn("环境变量里的模型")
        await client.turn("第二句也在上下文里")
    (request,) = llm.heard("环境变量里的模型")
    body = request.json
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("a-model-of-the-test", 0.25, 512)
    assert request.headers["authorization"] == "Bearer sk-black-box"
    assert roles(llm.asked("第二句也在上下文里")[-1], "user")[0] == "环境变量里的模型"


@pytest.mark.requirement("GW-165")
async def test_an_endpoint_that_cannot_list_its_models_is_asked_for_the_documents(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Such as a server that knows POST only."""
    with run_scripted_llm() as simple:
        simple.others = Answer([b"<html>Unsupported method</html>"], 501, kind="text/html")
        with gateway_process(tmp_path_factory.mktemp("simple"), LLM_BASE_URL=simple.url) as process:
            async with gateway_client(process.url) as client:
                assert "只会聊天" in (await client.turn("只会聊天")).content
        assert simple.asked("只会聊天")[0]["model"] == DOCUMENTED


@pytest.mark.requirement("GW-163")
async def test_an_address_may_end_with_a_slash_and_the_api_key_may_be_absent(
    bare: GatewayProcess, llm: ScriptedLlm
) -> None:
    async with gateway_client(bare.url) as client:
        await client.turn("斜杠结尾")
    (request,) = llm.heard("斜杠结尾")
    assert request.path == "/v1/chat/completions"
    assert "sk-" not in request.headers.get("authorization", "")
    assert offers(request.json) == {}


@pytest.mark.requirement("GW-164")
async def test_the_log_has_the_level_that_is_set(bare: GatewayProcess) -> None:
    async with gateway_client(bare.url) as client:
        await client.turn("没什么可说的")
    assert [line for line in bare.written if '"info"' in line or '"debug"' in line] == []


@pytest.mark.requirement("GW-164")
async def test_the_log_is_json_and_holds_nothing_that_was_said(unusual: GatewayProcess) -> None:
    async with gateway_client(unusual.url) as client:
        await client.turn("这句话不进日志")
    lines = [json.loads(line) for line in unusual.written]
    assert lines
    assert all(line["message"] and line["level"] for line in lines)
    assert "这句话不进日志" not in str(lines)


@pytest.mark.requirement("GW-125")
async def test_without_redis_texts_are_answered_and_sessions_are_errors(
    tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm
) -> None:
    server = RedisServer(tmp_path_factory.mktemp("lost"))
    server.start()
    try:
        settings = {"LLM_BASE_URL": llm.url, "FLEET_REDIS_URL": server.url, "LLM_ENABLE_CONTEXT": "true"}
        with gateway_process(tmp_path_factory.mktemp("without_redis"), patient=False, **settings) as process:
            # Two at once, as each waits for the database as long as it does in production.
            async with gateway_client(process.url) as client, gateway_client(process.url) as other:
                await client.turn("还有数据库")
                server.kill()
                await other.send("start_session", session_id="0" * 32)
                answered = asyncio.create_task(client.turn("没有数据库了"))
                assert (await other.expect("error"))["code"] == "SESSION_ERROR"
                assert "没有数据库了" in (await answered).content
                for one in (client, other):
                    assert [message for message in await one.settled() if message["type"] != "status"] == []
    finally:
        server.discard()
