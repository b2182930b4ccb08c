"""Photos over real HTTP, with a scripted model behind the api."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import httpx2
import pytest

from fleet.sim import vision as firmware
from fleet.sim.board import Board
from fleet.store.connect import Store
from fleet.wire import camera
from fleet.wire.identity import Keys
from tests.support.api_server import MAC, api_client
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server

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
async def client(store: Store, keys: Keys, model: OpenAiServer) -> AsyncIterator[httpx2.AsyncClient]:
    settings = {"vision_base_url": model.url, "vision_model": "eyes", "vision_timeout": 2.0}
    async with api_client(store, keys, **settings) as client:
        yield client


@pytest.fixture
def token(keys: Keys) -> str:
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
    client: httpx2.AsyncClient, model: OpenAiServer, keys: Keys, token: str
) -> None:
    now = datetime.now(UTC).timestamp()
    wrong = [
        sent("x"),
        sent(token[:-1] + ("A" if token[-1] != "A" else "B")),
        sent(token, "02:00:00:00:00:01"),
        sent(camera.issue(keys, MAC, now - 2 * camera.LIFE_SECONDS)),
        sent(camera.issue(keys, MAC, now + 10 * camera.LIFE_SECONDS)),
        sent(camera.issue(Keys("new:another-key-of-this-test"), MAC, now)),
        {**sent(token), "Authorization": token},
        {"Authorization": f"Bearer {token}"},
    ]
    for headers in wrong:
        answer = await client.post(EXPLAIN, headers=headers, **form())
        assert answer.status_code == 401
        assert answer.json()["success"] is False
    assert model.requests == []


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
    client: httpx2.AsyncClient, model: OpenAiServer, token: str
) -> None:
    for trouble in (Answer(then="silent", header=False), Answer(then="silent"), refused(500), said("  ")):
        model.script(CHAT, trouble)
        answer = await client.post(EXPLAIN, headers=sent(token), **form())
        assert (answer.status_code, answer.json()["success"]) == (200, False)
        assert "try again" in answer.json()["message"]


@pytest.mark.parametrize("text", ["x" * 60_000, "\x00" * 9_000, "图" * 9_000, '"' * 9_000])
async def test_no_answer_reaches_the_length_at_which_devices_hang(
    client: httpx2.AsyncClient, model: OpenAiServer, token: str, text: str
) -> None:
    model.script(CHAT, said(f"a{text}"))
    answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert answer.json()["success"] is True
    assert 4000 < len(answer.content) < 7000


async def test_without_a_model_that_sees_the_device_is_told_so(store: Store, keys: Keys, token: str) -> None:
    async with api_client(store, keys) as client:
        answer = await client.post(EXPLAIN, headers=sent(token), **form())
    assert (answer.status_code, answer.json()["success"]) == (200, False)
