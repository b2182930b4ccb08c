"""Answers and errors of turns (sections 5.1 to 5.4, 9.1, 11.3, 12.3, 14.1), and our extension `stream`."""

import asyncio
import datetime
from collections.abc import Iterator

import pytest

from tests.support.gateway_client import LIMIT, GatewayClient, Turn, gateway_client
from tests.support.gateway_process import GatewayProcess, gateway_process
from tests.support.openai_server import SSE, Answer, delta, refused, spoken, sse
from tests.support.scripted_llm import ScriptedLlm, roles


@pytest.mark.requirement("GW-022", "GW-023", "GW-024")
async def test_a_text_is_answered_with_one_final_response(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("你好呀", spoken("你好！", "有什么我可以", "帮助你的吗？"))
    turn = await client.turn("你好呀")
    (processing, *_) = turn.all("status")
    assert processing["status"] == "processing"
    assert processing["data"]["message"]
    assert set(turn.last) == {"type", "content", "tool_calls", "is_final", "timestamp"}
    assert turn.last["content"] == "你好！有什么我可以帮助你的吗？"
    assert (turn.last["tool_calls"], turn.last["is_final"]) == ([], True)


@pytest.mark.requirement("GW-026")
async def test_every_text_gets_exactly_one_answer(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("这次出错", refused(400))
    found = []
    for words in ("第一次", "这次出错", "第三次"):
        turn = await client.turn(words)
        found.append([message["type"] for message in turn.messages if message["type"] != "status"])
    assert found == [["llm_response"], ["error"], ["llm_response"]]
    assert [message for message in await client.settled() if message["type"] != "status"] == []


@pytest.mark.requirement("GW-025")
async def test_after_a_turn_the_connection_is_idle(client: GatewayClient) -> None:
    turn = await client.turn("说完就空闲")
    kinds = [*turn.kinds(), *(message.get("status", "") for message in await client.settled())]
    assert kinds.count("idle") == 1
    assert kinds.count("processing") == 1


@pytest.mark.requirement("GW-027")
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("今天😀天气晴朗🌞👍🏽！", "今天天气晴朗！"),
        ("★推荐☆：◆一◇二●三■四□", "推荐：一二三四"),
        ("这是**加粗**和*斜体*的字。", "这是加粗和斜体的字。"),
        ("## 标题\n- 第一\n- 第二", "标题"),
        ("看[这里](https://example.org/a)。", "看这里。"),
        ("运行`ls`。", "运行ls。"),
        ("温度是22℃，湿度45%。", "温度是22℃，湿度45%。"),
    ],
)
async def test_what_is_said_is_cleaned_for_speech(
    client: GatewayClient, llm: ScriptedLlm, written: str, said: str
) -> None:
    words = f"清理{written[:6]}"
    llm.when(words, spoken(*written))
    content = (await client.turn(words)).content
    assert said in content
    assert not set(content) & set("😀🌞👍★☆◆◇●■□*#`[]\n")


@pytest.mark.parametrize(
    "text",
    ["3*4=12，对吗？", "变量a_b等于2 * 3 * 4。", "用snake_case_name，不用C#。", "第[1]项是x^2。", "单价*2+运费*3。"],
)
async def test_what_is_no_markdown_is_left_alone(client: GatewayClient, llm: ScriptedLlm, text: str) -> None:
    words = f"原样{text}"
    llm.when(words, spoken(*text))
    assert (await client.turn(words)).content == text


@pytest.mark.requirement("GW-028", "GW-029")
async def test_the_model_is_told_how_to_speak_and_what_time_it_is(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.turn("系统提示词")
    (body,) = llm.asked("系统提示词")
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    (prompt,) = roles(body, "system")
    assert str(datetime.datetime.now(datetime.UTC).year) in body["messages"][1]["content"]
    assert "markdown" in prompt.lower()


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm) -> Iterator[GatewayProcess]:
    """A gateway that does not wait long for its model."""
    with gateway_process(tmp_path_factory.mktemp("impatient"), LLM_BASE_URL=llm.url, LLM_TIMEOUT="4") as process:
        yield process


async def answered(client: GatewayClient, words: str) -> Turn:
    """Ask until there is an answer: on a busy machine that of a model which answers may be late, too."""
    async with asyncio.timeout(LIMIT):
        while (turn := await client.turn(words)).last.get("code") == "TIMEOUT":
            pass
    return turn


@pytest.mark.requirement("GW-120")
async def test_a_model_that_does_not_answer_in_time_is_a_timeout(impatient: GatewayProcess, llm: ScriptedLlm) -> None:
    llm.when("模型超时", Answer(then="silent", header=False))
    async with gateway_client(impatient.url) as client:
        assert (await client.turn("模型超时")).code == "TIMEOUT"
        assert "还可以用" in (await answered(client, "还可以用")).content


@pytest.mark.requirement("GW-120")
async def test_a_model_that_trickles_without_an_end_is_a_timeout(impatient: GatewayProcess, llm: ScriptedLlm) -> None:
    llm.when("一直说", Answer(sse(*[delta(content="字")] * 10_000), kind=SSE, pace=0.05))
    async with gateway_client(impatient.url) as client:
        turn = await client.turn("一直说")
        assert (turn.code, turn.last["message"]) == ("TIMEOUT", "LLM request timeout")


@pytest.mark.requirement("GW-121")
@pytest.mark.parametrize("status", [400, 401, 403, 422, 500, 503])
async def test_an_error_of_the_model_is_an_llm_error_with_its_details(
    client: GatewayClient, llm: ScriptedLlm, status: int
) -> None:
    words = f"模型错误{status}"
    llm.when(words, refused(status, message="the model says no"))
    turn = await client.turn(words)
    assert turn.code == "LLM_ERROR"
    assert turn.last["details"]
    assert "sk-" not in str(turn.last)


@pytest.mark.requirement("GW-122")
async def test_a_model_that_is_not_loaded_is_an_llm_error(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("模型未加载", refused(404, "model_not_found", "The model does not exist"))
    assert (await client.turn("模型未加载")).code == "LLM_ERROR"


@pytest.mark.requirement("GW-121")
@pytest.mark.parametrize(
    "body",
    [
        b"<html>welcome</html>",
        b"",
        b"{}",
        b"null",
        b'{"error":{"message":"no such model"}}',
        b'{"choices":[]}',
        b'{"choices":[{"delta":7}]}',
        b'{"choices":[{"message":{"tool_calls":"x"}}]}',
        b"[" * 100_000,
        b"data: {}\n\ndata: [DONE]\n\n",
    ],
)
async def test_an_answer_that_is_no_completion_is_an_llm_error_without_a_traceback(
    gateway: GatewayProcess, client: GatewayClient, llm: ScriptedLlm, body: bytes
) -> None:
    words = f"不是回答{body[:30]!r}"
    llm.when(words, Answer([body], kind="text/html" if body.startswith(b"<") else "application/json"))
    assert (await client.turn(words)).code == "LLM_ERROR"
    assert not any("Traceback" in line for line in gateway.written)


@pytest.mark.requirement("GW-121")
@pytest.mark.parametrize("empty", [spoken(""), spoken("说了一半", then="break"), Answer([b"no json"])])
async def test_a_damaged_or_empty_answer_gets_one_answer(
    client: GatewayClient, llm: ScriptedLlm, empty: Answer
) -> None:
    words = f"坏掉的回答{len(empty.body)}{empty.then}"
    llm.when(words, empty)
    turn = await client.turn(words)
    assert turn.last["type"] in ("llm_response", "error")
    assert turn.last.get("code", "LLM_ERROR") == "LLM_ERROR"
    assert turn.last.get("content", "something")
    assert [message for message in await client.settled() if message["type"] != "status"] == []


@pytest.mark.requirement("GW-121")
async def test_a_failed_turn_is_not_remembered(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("不会被记住", refused(400))
    await client.send("configure", enable_context=True)
    await client.turn("不会被记住")
    await client.turn("下一句话")
    assert roles(llm.asked("下一句话")[-1], "user", "assistant") == ["下一句话"]


@pytest.mark.requirement("GW-130")
async def test_only_who_asks_for_a_stream_gets_pieces(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("讲三句", spoken("第一句话说完了。", "第二句话说完了。", "第三句话说完了。"))
    assert len((await client.turn("讲三句")).all("llm_response")) == 1
    await client.send("configure", stream=True)
    pieces = (await client.turn("讲三句")).all("llm_response")
    assert len(pieces) > 1
    assert [piece["is_final"] for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert "".join(piece["content"] for piece in pieces[:-1]).replace(" ", "") in (
        "第一句话说完了。第二句话说完了。第三句话说完了。",
        "第一句话说完了。第二句话说完了。",
    )
    await client.send("configure", stream=False)
    assert len((await client.turn("讲三句")).all("llm_response")) == 1


@pytest.mark.requirement("GW-130")
async def test_the_first_piece_comes_while_the_model_still_speaks(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("先听一句", spoken("第一句话说完了。", "第二句话", then="silent"))
    await client.send("configure", stream=True)
    await client.send("text_input", text="先听一句")
    piece = await client.expect("llm_response")
    assert (piece["content"], piece["is_final"]) == ("第一句话说完了。", False)
