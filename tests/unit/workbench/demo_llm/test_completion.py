import json
from typing import Any

from fleet.workbench.demo_llm.completion import Completion, complete, usage, write_event
from fleet.workbench.demo_llm.prompt_cache import PromptCache
from fleet.workbench.demo_llm.requests import parse_request
from tests.support.demo_tools import STOCK, now


def completed(utterance: str, **fields: Any) -> Any:
    body = {"model": "any", "messages": [{"role": "user", "content": utterance}], "tools": STOCK, **fields}
    return complete(parse_request(json.dumps(body).encode()), now, PromptCache())


def deltas(utterance: str) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in completed(utterance).chunks(with_usage=False)]


def test_text_is_streamed_word_by_word_after_the_role() -> None:
    first, *pieces, last = deltas("what time is it")
    assert first == {"role": "assistant", "content": "", "refusal": None}
    assert [piece["content"] for piece in pieces] == ["It", " is", " 3:05", " PM."]
    assert last == {}


def test_chinese_is_streamed_in_small_pieces_that_join_again() -> None:
    _, *pieces, _ = deltas("现在几点了")
    said = [piece["content"] for piece in pieces]
    assert "".join(said) == "我看看，现在是15点5分。"
    assert len(said) > 2


def test_calls_are_streamed_with_their_arguments_in_pieces() -> None:
    first, *pieces, last = deltas("take a photo and tell me what you see")
    assert (first["content"], last) == (None, {})
    opening, *parts = [piece["tool_calls"][0] for piece in pieces]
    assert (opening["type"], opening["function"]) == ("function", {"name": "camera_take_photo", "arguments": ""})
    assert opening["id"].startswith("call_")
    assert len(parts) > 2
    assert all(set(part) == {"index", "function"} for part in parts)
    written = "".join(part["function"]["arguments"] for part in parts)
    assert json.loads(written) == {"question": "take a photo and tell me what you see"}


def test_every_call_has_its_own_index_and_id() -> None:
    calls = completed("volume 30, brightness 50").whole()["choices"][0]["message"]["tool_calls"]
    assert len({call["id"] for call in calls}) == 2
    indexes = [delta["tool_calls"][0]["index"] for delta in deltas("volume 30, brightness 50") if "tool_calls" in delta]
    assert indexes == sorted(indexes)
    assert set(indexes) == {0, 1}


def test_the_last_chunk_tells_why_it_ended_and_the_usage_comes_after() -> None:
    chunks = list(completed("volume 30").chunks(with_usage=True))
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["choices"] == []
    usage = chunks[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}


def test_cached_tokens_are_those_that_began_an_earlier_prompt() -> None:
    cache, said = PromptCache(), [{"role": "user", "content": "hello"}]
    counts = []
    for new in ([], [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "volume 30"}]):
        said += new
        body = json.dumps({"model": "any", "messages": said, "tools": STOCK}).encode()
        counts.append(complete(parse_request(body), now, cache).whole()["usage"])
    first, second = counts
    assert first["prompt_tokens"] > second["prompt_tokens_details"]["cached_tokens"] > 0.9 * first["prompt_tokens"]


def test_a_whole_answer_has_text_or_calls() -> None:
    text, calls = (completed(utterance).whole()["choices"][0] for utterance in ("hello", "volume 30"))
    assert (text["finish_reason"], text["message"]["content"]) == ("stop", "Hello. What can I do for you?")
    assert (calls["finish_reason"], calls["message"]["content"]) == ("tool_calls", None)


def test_equal_requests_get_equal_ids_and_others_do_not() -> None:
    assert completed("hello").whole() == completed("hello").whole()
    assert completed("hello").id == completed("hello", stream=True).id
    assert completed("hello").id != completed("hi").id


def test_an_event_is_one_line() -> None:
    assert write_event({"a": "x\ny 好"}) == 'data: {"a":"x\\ny 好"}\n\n'.encode()


def test_pieces_of_text_and_calls_join_to_the_whole() -> None:
    text = " Scene 137: 你好，世界！\n  internationalisation ends. "
    completion = Completion("1", "m", text, (("a", '{"x": "0123456789"}'), ("b", "")), usage("", text))
    said, arguments = "", {0: "", 1: ""}
    names: dict[int, str] = {}
    for chunk in json.loads(json.dumps(list(completion.chunks(with_usage=False)))):
        assert chunk["object"] == "chat.completion.chunk"
        delta = chunk["choices"][0]["delta"]
        said += delta.get("content") or ""
        for call in delta.get("tool_calls", []):
            arguments[call["index"]] += call["function"]["arguments"]
            names.setdefault(call["index"], call["function"].get("name"))
    assert said == text
    assert arguments == {0: '{"x": "0123456789"}', 1: ""}
    assert names == {0: "a", 1: "b"}
    assert json.loads(json.dumps(completion.whole()))["choices"][0]["message"]["content"] == text
    assert completion.finish == "tool_calls"
