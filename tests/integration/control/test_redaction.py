"""What is redacted is gone everywhere: in the conversation, its search and export, its events, and in Redis."""

import asyncio
import json

import pytest

from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.core.history import INTERRUPTED
from fleet.core.permissions import CONVERSATIONS_READ
from fleet.roles.control.leader.event_collector import EventCollector
from tests.support.control_server import STRANGER, ControlStage

MAC, TURN = "aa:bb:cc:00:00:01", "/v1/conversations/1/turns"
SECRET, REPLY = "My PIN is 4711", "I keep 4711 to myself."
BOTH = {"lines": ["question", "answer"]}


class Said:
    """Lets turns end, and collects their events as the leader does."""

    def __init__(self, stage: ControlStage) -> None:
        self.stage, self.store = stage, stage.services.store
        shards = range(self.store.keys.shards)
        offer = stage.services.following.tail.offer
        self.collector = EventCollector(Outbox(self.store), stage.database, _copied, offer, shards)

    async def turn(self, name: str, question: str, answer: str, kind: str = "turn.answered") -> None:
        key = self.store.keys.events(self.store.keys.shard(MAC))
        data = json.dumps({"turn": name, "session": "s1", "user": question, "answer": answer, "tools": ["clock"]})
        await self.store.client.execute_command("XADD", key, "NOMKSTREAM", "*", "k", kind, "m", MAC, "d", data)
        await self.collector.step()

    async def redact(self, turn: int, *lines: str) -> dict[str, object]:
        answer = await self.stage.ask(f"POST {TURN}/{turn}:redact", json={"lines": lines})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def everything(self) -> str:
        """Return all that the API tells of what was said, and what Redis has of it."""
        pages = [
            await self.stage.ask(f"GET /v1/{path}")
            for path in ("conversations/1", "conversations:export", "events?limit=500", "audit")
        ]
        client, keys = self.store.client, self.store.keys
        known = [await client.hgetall(key) for key in (keys.turn(MAC), keys.reply(MAC, "t1"), keys.reply(MAC, "t2"))]
        known.append(await client.lrange(keys.history(MAC), 0, -1))
        return "\n".join([*(page.text for page in pages), *map(repr, known)])


async def _copied(_: object) -> int:
    return 0


@pytest.fixture
async def said(stage: ControlStage) -> Said:
    one = Said(stage)
    await one.collector.begin(1)
    await one.turn("t1", "Good morning", "Good morning!")
    await one.turn("t2", SECRET, REPLY)
    return one


async def remembered(said: Said, *lines: tuple[str, str]) -> str:
    """Write a history as a worker does; return its key."""
    keys = said.store.keys
    for role, text in lines:
        await said.store.client.rpush(keys.history(MAC), json.dumps({"role": role, "text": text}))
    await said.store.client.hset(keys.conversation(MAC), "count", len(lines))
    return str(keys.history(MAC))


async def test_a_redacted_turn_is_gone_everywhere(said: Said) -> None:
    store, keys = said.store, said.store.keys
    history = await remembered(
        *(said, ("user", "Good morning"), ("assistant", "Good morning!"), ("user", SECRET), ("assistant", REPLY)),
        *(("user", "Thanks"), ("assistant", "You are welcome.")),
    )
    await store.client.hset(keys.turn(MAC), mapping={"turn": "t2", "messages": SECRET})
    await store.client.hset(keys.reply(MAC, "t2"), mapping={"state": "answered", "text": REPLY})
    assert "4711" in await said.everything()

    after = await said.redact(2, "question", "answer")
    assert (after["question"], after["answer"], after["redacted"]) == ("", "", ["question", "answer"])
    assert after["tools"] == ["clock"], "what was no text stays"
    assert "4711" not in await said.everything()
    kept = [json.loads(line)["text"] for line in await store.client.lrange(history, 0, -1)]
    assert kept == ["Good morning", "Good morning!", "Thanks", "You are welcome."]
    assert not await store.client.exists(keys.conversation(MAC)), "it is not remembered: its lines are miscounted"
    assert (await said.stage.ask("GET /v1/conversations?words=4711")).json()["items"] == []
    assert len((await said.stage.ask("GET /v1/conversations?words=morning")).json()["items"]) == 1
    audit = (await said.stage.ask("GET /v1/audit")).json()["items"]
    (row,) = [one for one in audit if one["action"] == "conversation.redact"]
    assert (row["object"], row["after"]) == ("conversation/1", {"turn": 2, "lines": ["answer", "question"]})


async def test_one_line_goes_and_the_other_stays_until_it_goes_too(said: Said) -> None:
    after = await said.redact(2, "question")
    assert (after["question"], after["answer"], after["redacted"]) == ("", REPLY, ["question"])
    assert len((await said.stage.ask("GET /v1/conversations?words=to myself")).json()["items"]) == 1
    assert (await said.stage.ask("GET /v1/conversations?words=pin is")).json()["items"] == []
    after = await said.redact(2, "answer")
    assert (after["question"], after["answer"], after["redacted"]) == ("", "", ["question", "answer"])


async def test_two_redactions_at_once_both_count(said: Said) -> None:
    await asyncio.gather(said.redact(2, "question"), said.redact(2, "answer"))
    assert "4711" not in await said.everything()


async def test_an_answer_that_is_shortened_later_does_not_come_back(said: Said) -> None:
    await said.redact(2, "answer")
    await said.turn("t2", SECRET, "I keep 4711", "turn.shortened")
    (turn,) = (await said.stage.ask("GET /v1/conversations/1?after=1")).json()["turns"]
    assert (turn["question"], turn["answer"], turn["outcome"]) == (SECRET, "", "interrupted")
    assert "I keep" not in await said.everything()


async def test_an_answer_that_was_shortened_before_its_event_came_is_found_in_the_history(said: Said) -> None:
    history = await remembered(said, ("user", SECRET), ("assistant", f"I keep 4711 {INTERRUPTED}"), ("user", "Thanks"))
    await said.redact(2, "question")
    assert [json.loads(line)["text"] for line in await said.store.client.lrange(history, 0, -1)] == ["Thanks"]


async def test_no_kept_answer_outlives_a_later_redaction(said: Said) -> None:
    key = {"Idempotency-Key": "k"}
    path = f"POST {TURN}/2:redact"
    assert REPLY in (await said.stage.ask(path, json={"lines": ["question"]}, headers=key)).text
    await said.redact(2, "answer")
    again = await said.stage.ask(path, json={"lines": ["question"]}, headers=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert "4711" not in again.text


async def test_a_deleted_conversation_is_not_told_to_the_model_either(said: Said) -> None:
    store, keys = said.store, said.store.keys
    history = await remembered(said, ("user", SECRET), ("assistant", REPLY), ("user", "Thanks"))
    await store.client.hset(keys.turn(MAC), mapping={"turn": "t2", "messages": SECRET})
    await store.client.hset(keys.reply(MAC, "t2"), mapping={"state": "answered", "text": REPLY})
    assert (await said.stage.ask("DELETE /v1/conversations/1")).status_code == 204
    assert [json.loads(line)["text"] for line in await store.client.lrange(history, 0, -1)] == ["Thanks"]
    assert not await store.client.exists(keys.turn(MAC), keys.reply(MAC, "t2"), keys.conversation(MAC))


async def test_an_erased_device_has_no_history_for_the_model(said: Said) -> None:
    await DeviceRows(said.stage.database, 1).add([NewDevice(mac=MAC)])
    store, keys = said.store, said.store.keys
    for state, kept in (("running", 1), ("written", 0)):
        history = await remembered(said, ("user", SECRET), ("assistant", REPLY))
        await store.client.hset(keys.turn(MAC), mapping={"turn": "t9", "state": state})
        assert (await said.stage.ask(f"DELETE /v1/devices/{MAC}/data")).status_code == 200
        assert not await store.client.exists(history, keys.conversation(MAC))
        assert await store.client.exists(keys.turn(MAC)) == kept, "a turn that runs now is no former one"


async def test_a_stranger_erases_nothing_that_the_model_is_told(said: Said) -> None:
    await DeviceRows(said.stage.database, 1).add([NewDevice(mac=MAC)])
    history = await remembered(said, ("user", SECRET), ("assistant", REPLY))
    for request in (f"DELETE /v1/devices/{MAC}/data", "DELETE /v1/conversations/1"):
        assert (await said.stage.ask(request, STRANGER)).status_code == 404
    assert await said.store.client.llen(history) == 2


async def test_a_device_that_moves_takes_nothing_along_that_was_said(said: Said) -> None:
    await DeviceRows(said.stage.database, 1).add([NewDevice(mac=MAC)])
    store, keys = said.store, said.store.keys
    history = await remembered(said, ("user", SECRET), ("assistant", REPLY))
    await store.client.hset(keys.turn(MAC), mapping={"turn": "t2", "state": "written", "messages": SECRET})
    await store.client.rpush(keys.memory(MAC), "The PIN is 4711.")
    move = f"POST /v1/devices/{MAC}:move"
    assert (await said.stage.ask(move, json={"tenant": "default"})).json()["changed"] is False
    assert await store.client.exists(history, keys.turn(MAC), keys.memory(MAC)) == 3
    assert (await said.stage.ask(move, json={"tenant": "other"})).json()["changed"] is True
    assert not await store.client.exists(history, keys.turn(MAC), keys.memory(MAC), keys.conversation(MAC))
    assert (await said.stage.ask("GET /v1/conversations/1")).status_code == 200, "it stays with the old tenant"


async def test_a_deleted_conversation_leaves_no_text_in_its_events(said: Said) -> None:
    assert "4711" in (await said.stage.ask("GET /v1/events")).text
    assert (await said.stage.ask("DELETE /v1/conversations/1")).status_code == 204
    items = (await said.stage.ask("GET /v1/events")).json()["items"]
    assert [(one["kind"], one["data"]["user"], one["data"]["answer"]) for one in items] == [
        ("turn.answered", "", ""),
        ("turn.answered", "", ""),
    ]


async def test_who_may_not_redacts_nothing(said: Said) -> None:
    reader = await said.stage.add_token("flt_reader", CONVERSATIONS_READ)
    for path, token, status in (
        (f"{TURN}/2:redact", reader, 403),
        (f"{TURN}/2:redact", STRANGER, 404),
        (f"{TURN}/9:redact", None, 401),
        ("/v1/conversations/9/turns/2:redact", "flt_full", 404),
    ):
        assert (await said.stage.ask(f"POST {path}", token, json=BOTH)).status_code == status, path
    for wrong in ({"lines": []}, {"lines": ["all"]}, {}):
        assert (await said.stage.ask(f"POST {TURN}/2:redact", json=wrong)).status_code == 422
    assert SECRET in await said.everything()
    actions = [row["action"] for row in (await said.stage.ask("GET /v1/audit")).json()["items"]]
    assert "conversation.redact" not in actions


async def test_nothing_is_redacted_while_redis_is_away(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.roles.control.routes.conversations.forget_turns", _away)
    assert (await said.stage.ask(f"POST {TURN}/2:redact", json=BOTH)).status_code == 503
    assert SECRET in (await said.stage.ask("GET /v1/conversations/1")).text
    assert SECRET in (await said.stage.ask("GET /v1/events")).text


async def _away(*_: object) -> None:
    from fleet.ground.errors import Unavailable

    raise Unavailable("redis is away")
