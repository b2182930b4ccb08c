"""Photos over real HTTP, with a scripted model behind the api."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.wire import camera
from fleet.wire.identity import CredentialKeys, Minima
from fleet.workbench.sim.tools import vision as firmware
from fleet.workbench.sim.tools.board import Board
from tests.conftest import TEST_KEYS
from tests.support.api_server import MAC, api_client
from tests.support.openai_server import SSE, Answer, OpenAiServer, refused, run_openai_server, spoken
from tests.support.ports import free_port
from tests.support.process import accepts
from tests.support.role_process import RoleProcess
from tests.support.until import until

JPEG = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 200 + b"\xff\xd9"
EXPLAIN = "/vision/explain"
CHAT = "chat/completions"


def said(text: str) -> Answer:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Answer([json.dumps(body).encode()])


@pytest.fixture(scope="module")
def model_server() -> Iterator[OpenAiServer]:
    with run_openai_server() as server:
        yield server


@pytest.fixture
def model(model_server: OpenAiServer) -> OpenAiServer:
    model_server.reset()
    return model_server


@pytest.fixture
async def client(store: Store, keys: CredentialKeys, model: OpenAiServer) -> AsyncIterator[httpx2.AsyncClient]:
    settings = {"vision_base_url": model.url, "vision_model": "eyes", "vision_timeout": 240.0}
    async with api_client(store, keys, **settings) as client:
        yield client


@pytest.fixture
async def impatient(store: Store, keys: CredentialKeys, model: OpenAiServer) -> AsyncIterator[httpx2.AsyncClient]:
    settings = {"vision_base_url": model.url, "vision_model": "eyes", "vision_timeout": 2.0}
    async with api_client(store, keys, **settings) as client:
        yield client


@pytest.fixture
def token(keys: CredentialKeys) -> str:
    return camera.issue(keys, MAC, datetime.now(UTC).timestamp())


def sent(token: str, mac: str = MAC) -> dict[str, str]:
    return {"Device-Id": mac, "Client-Id": "x", "Authorization": f"Bearer {token}"}


def form(jpeg: bytes = JPEG, question: str | None = "What is this?") -> dict[str, object]:
    return {"files": {"file": ("camera.jpg", jpeg, "image/jpeg")}, "data": {"question": question} if question else {}}


async def test_firmwares_upload_in_chunks_is_answered(
    client: httpx2.AsyncClient, model: OpenAiServer, token: str
) -> None:
    model.script(CHAT, said("<think>hm</think> A red cup."))
    board = Board(vision_url=f"{str(client.base_url).rstrip(chr(47))}{EXPLAIN}", vision_token=token, photo=JPEG)
    board.upload_headers = {"Device-Id": MAC, "Client-Id": "x"}
    explained = await firmware.explain(board, 'What is "this"? 这是什么')
    assert not explained.failed
    assert json.loads(explained.text) == {"success": True, "response": "A red cup."}
    [request] = model.requests
    _, asked = request.json["messages"]
    assert asked["content"][0]["text"] == 'What is "this"? 这是什么'
    assert base64.b64decode(asked["content"][1]["image_url"]["url"].partition(",")[2]) == JPEG
    assert request.json["model"] == "eyes"


async def test_an_upload_with_a_length_is_answered(client: httpx2.AsyncClient, model: OpenAiServer, token: str) -> None:
    model.script(CHAT, said("A cup."))
    answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert (answer.status_code, answer.json()) == (200, {"success": True, "response": "A cup."})


async def test_only_the_devices_own_token_counts_and_not_for_long(
    client: httpx2.AsyncClient, model: OpenAiServer, keys: CredentialKeys, token: str
) -> None:
    now = datetime.now(UTC).timestamp()
    keys.require(Minima(macs={MAC: 6}))
    wrong = [
        sent(camera.issue(keys, MAC, now, 5)),
        sent("x"),
        sent(token[:-1] + ("A" if token[-1] != "A" else "B")),
        sent(token, "02:00:00:00:00:01"),
        sent(camera.issue(keys, MAC, now - 2 * camera.LIFE_SECONDS)),
        sent(camera.issue(keys, MAC, now + 10 * camera.LIFE_SECONDS)),
        sent(camera.issue(CredentialKeys("new:another-key-of-this-test"), MAC, now)),
        {**sent(token), "Authorization": token},
        {"Authorization": f"Bearer {token}"},
    ]
    for headers in wrong:
        answer = await client.post(EXPLAIN, headers=headers, **form())
        assert answer.status_code == 401
        assert answer.json()["success"] is False
    assert model.requests == []
    model.script(CHAT, said("A cup."))
    assert (await client.post(EXPLAIN, headers=sent(camera.issue(keys, MAC, now, 6)), **form())).status_code == 200


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (form(b"\xff\xd8\xff" + bytes(5_000_000)), 413),
        (form(b"GIF89a"), 415),
        (form(b""), 415),
        (form(question=None), 400),
        (form(question="x" * 5000), 400),
        ({"data": {"question": "What?"}}, 415),
        ({"content": b"{}"}, 415),
        ({"content": b"junk", "headers": {"Content-Type": "multipart/form-data; boundary=x"}}, 400),
        ({"content": b"junk", "headers": {"Content-Type": "multipart/form-data"}}, 400),
    ],
)
async def test_what_is_no_photo_with_a_question_is_refused_in_words(
    client: httpx2.AsyncClient, model: OpenAiServer, token: str, given: dict[str, object], status: int
) -> None:
    more = given.get("headers", {})
    assert isinstance(more, dict)
    answer = await client.post(EXPLAIN, **{**given, "headers": sent(token) | more})
    assert answer.status_code == status
    assert answer.json()["success"] is False and answer.json()["message"]
    assert model.requests == []


async def test_a_model_that_is_slow_or_fails_gives_a_polite_answer_in_time(
    impatient: httpx2.AsyncClient, model: OpenAiServer, token: str
) -> None:
    for trouble in (Answer(then="silent", header=False), Answer(then="silent"), refused(500), said("  ")):
        model.script(CHAT, trouble)
        answer = await impatient.post(EXPLAIN, headers=sent(token), **form())
        assert (answer.status_code, answer.json()["success"]) == (200, False)
        assert "try again" in answer.json()["message"]


NO_COMPLETION = {
    "a page": Answer([b"<!DOCTYPE html><html><body>Welcome</body></html>"], kind="text/html"),
    "a page named JSON": Answer([b"<html></html>"]),
    "nothing": Answer(),
    "nothing, named nothing": Answer(kind=""),
    "white space": Answer([b" \n"] * 20),
    "text": Answer([b"ok"], kind="text/plain"),
    "an error": Answer([b'{"error":{"message":"no such model","type":"t"}}']),
    "an error as text": Answer([b'{"error":"boom"}']),
    "an object": Answer([b"{}"]),
    "null": Answer([b"null"]),
    "a list": Answer([b"[]"]),
    "a text": Answer([b'"a cup"']),
    "no choices": Answer([b'{"id":"c","object":"chat.completion","choices":[]}']),
    "choices of another kind": Answer([b'{"choices":{"0":1}}']),
    "a choice without a message": Answer([b'{"choices":[{"index":0,"finish_reason":"stop"}]}']),
    "a message without text": Answer([b'{"choices":[{"message":{"role":"assistant","content":null}}]}']),
    "half a document": Answer([b'{"choices":[{"message":{"con']),
    "deep": Answer([b"[" * 100_000]),
    "no UTF-8": Answer([b'{"choices":[{"message":{"content":"\xff\xfe"}}]}']),
    "compressed, it says": Answer([b"{}"], headers={"content-encoding": "gzip"}),
    "a stream of nothing": Answer([b"data: [DONE]\n\n"], kind=SSE),
    "a stream with an error": Answer([b'data: {"error":{"message":"overloaded"}}\n\n'], kind=SSE),
    "a stream that breaks off": spoken("A red", then="break"),
    "without an end": Answer([b"x" * 65_536] * 40),
}


@pytest.mark.parametrize("name", NO_COMPLETION)
async def test_an_answer_that_is_no_completion_is_told_to_the_device_politely(
    client: httpx2.AsyncClient, model: OpenAiServer, token: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    model.script(CHAT, NO_COMPLETION[name])
    answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert (answer.status_code, answer.json()["success"]) == (200, False)
    assert 0 < len(answer.json()["message"]) < 200
    assert not any(record.exc_info for record in caplog.records)


STREAMED = b"".join(spoken("<think>hm</think>A ", "red ", "cup.").body)


@pytest.mark.parametrize(
    "understood",
    [
        spoken("<think>hm</think>A ", "red ", "cup."),
        Answer([STREAMED[at : at + 7] for at in range(0, len(STREAMED), 7)], kind="application/json"),
        Answer([b": keep alive\n\n", STREAMED], kind="text/plain"),
        Answer([b"\n\n", *said("A red cup.").body], kind=SSE),
        Answer([b'{"choices":[{"message":{"content":[{"type":"text","text":"A red cup."}]}}]}']),
    ],
)
async def test_an_event_stream_nobody_asked_for_and_a_document_of_any_type_are_understood(
    client: httpx2.AsyncClient, model: OpenAiServer, token: str, understood: Answer
) -> None:
    model.script(CHAT, understood)
    answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert (answer.status_code, answer.json()) == (200, {"success": True, "response": "A red cup."})


@pytest.mark.parametrize(("language", "told"), [("zh-CN", "照片"), ("en-US", "photo"), ("", "photo")])
async def test_the_reason_is_in_the_devices_language(
    client: httpx2.AsyncClient, store: Store, model: OpenAiServer, token: str, language: str, told: str
) -> None:
    await Devices(store).describe(MAC, {"lang": language})
    model.script(CHAT, Answer([b"{}"]))
    answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert told in answer.json()["message"]


async def test_an_api_of_its_own_survives_every_such_answer(
    redis_url: str, keys: CredentialKeys, model: OpenAiServer, token: str, tmp_path: Path
) -> None:
    port = free_port()
    settings = {
        "FLEET_REDIS_URL": redis_url,
        "FLEET_KEYS": TEST_KEYS,
        "FLEET_HTTP_PORT": str(port),
        "FLEET_DATA_DIR": str(tmp_path),
        "VISION_BASE_URL": model.url,
        "VISION_MODEL": "eyes",
        "FLEET_RATE_PHOTOS": "100/100",
        "VISION_TIMEOUT": "240",
    }
    role = RoleProcess("api", settings, tmp_path / "log")
    try:
        until(lambda: accepts(port))
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=240) as client:
            for trouble in NO_COMPLETION.values():
                model.script(CHAT, trouble)
                answer = await client.post(EXPLAIN, headers=sent(token), **form())
                assert (answer.status_code, answer.json()["success"]) == (200, False)
            model.script(CHAT, said("A cup."))
            answer = await client.post(EXPLAIN, headers=sent(token), **form())
            assert answer.json() == {"success": True, "response": "A cup."}
        assert not any("Traceback" in str(line) for line in role.lines)
    finally:
        role.discard()


@pytest.mark.parametrize("text", ["x" * 60_000, "\x00" * 9_000, "图" * 9_000, '"' * 9_000])
async def test_no_answer_reaches_the_length_at_which_devices_hang(
    client: httpx2.AsyncClient, model: OpenAiServer, token: str, text: str
) -> None:
    model.script(CHAT, said(f"a{text}"))
    answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert answer.json()["success"] is True
    assert 4000 < len(answer.content) < 7000


async def test_without_a_model_that_sees_the_device_is_told_so(store: Store, keys: CredentialKeys, token: str) -> None:
    async with api_client(store, keys) as client:
        answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert (answer.status_code, answer.json()["success"]) == (200, False)
