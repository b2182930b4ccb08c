"""Agents, versions, assignments and providers over the REST API, down to what Redis then has."""

import asyncio
import base64
import io
import wave
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert

from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.sealing import Sealer, new_key
from fleet.adapters.sql.assignment_rows import AssignmentRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import ASSIGNMENT, GROUP, GROUP_MEMBER, IDEMPOTENCY
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, TextDelta, TokensUsed, TokenUsage, ToolOffer
from fleet.ground.errors import SlowQuery
from fleet.roles.control.agents.compiler import AgentCompiler
from fleet.roles.control.agents.voice_sample import LONGEST_SOUND
from fleet.roles.control.routes import providers
from fleet.wire.agents import CompiledAgent
from tests.support.control_server import FULL, STRANGER, ControlStage, control_stage
from tests.support.memory_store import memory_store
from tests.support.openai_server import Answer, refused, run_openai_server

SECRET = new_key()
SOUND = b"\x00\x20\x00\xe0" * 1_000
"""An eighth of a second at 16 kHz."""
MAC, OTHER = "aa:bb:cc:dd:ee:01", "aa:bb:cc:dd:ee:02"
THIRD = "aa:bb:cc:dd:ee:03"


class Site:
    """What an operator does with agents."""

    def __init__(self, stage: ControlStage) -> None:
        self.stage = stage
        self.compiled, self.known = CompiledAgents(stage.services.store), KnownAgents(stage.services.store)

    async def ask(self, verb: str, status: int = 200, token: str = FULL, **more: Any) -> Any:
        answer = await self.stage.ask(verb, token, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def make(self, name: str, **draft: Any) -> int:
        return int((await self.ask("POST /v1/agents", 201, json={"name": name, "draft": draft}))["id"])

    async def publish(self, agent: int) -> int:
        return int((await self.ask(f"POST /v1/agents/{agent}:publish"))["number"])

    async def prompts(self) -> list[str | None]:
        """Return the prompt of the agent of each device, as a worker reads it."""
        digests = await self.compiled.of_devices([MAC, OTHER])
        return [(await self.known.find(digest)).document.prompt for digest in digests]


class Parrot:
    """A model that says whose prompt it has."""

    async def find(self, agent: CompiledAgent) -> Llm:
        return self

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        yield TextDelta(f"I am asked by: {messages[0].text.partition(chr(10))[0]}")
        yield TokensUsed(TokenUsage(7, 0, 3))


@pytest.fixture
async def site(database: Database, tmp_path: Path) -> AsyncIterator[Site]:
    store = await memory_store()
    async with control_stage(database, store, tmp_path, Parrot(), secret_keys=SECRET) as stage:
        await DeviceRows(database, 1).add([NewDevice(MAC), NewDevice(OTHER)])
        yield Site(stage)
    await store.close()


async def test_what_somebody_else_changed_is_not_deleted(site: Site) -> None:
    provider = {"name": "house", "kind": "chat", "adapter": "openai", "base_url": "http://a:1/v1"}
    made = {
        f"/v1/agents/{await site.make('ann')}": {"notes": "x"},
        f"/v1/providers/{(await site.ask('POST /v1/providers', 201, json=provider))['id']}": {"model": "large"},
    }
    for path, change in made.items():
        seen = (await site.stage.ask(f"GET {path}")).headers["etag"]
        await site.ask(f"PATCH {path}", json=change)
        await site.ask(f"DELETE {path}", 412, headers={"If-Match": seen})
        now = (await site.stage.ask(f"GET {path}")).headers["etag"]
        await site.ask(f"DELETE {path}", 204, headers={"If-Match": now})
        await site.ask(f"DELETE {path}", 404, headers={"If-Match": now})


async def test_a_draft_counts_when_it_is_published_and_an_earlier_version_can_count_again(site: Site) -> None:
    agent = await site.make("ann", prompt="one")
    assert (await site.ask(f"POST /v1/agents/{agent}:assign", json={"site": True}))["devices"] == 0
    assert await site.prompts() == [None, None]
    assert await site.publish(agent) == 1
    assert await site.prompts() == ["one", "one"]
    changed = await site.ask(f"PATCH /v1/agents/{agent}", json={"draft": {"prompt": "two"}})
    assert changed["draft"]["prompt"] == "two" and changed["live"] == 1
    assert await site.prompts() == ["one", "one"]
    assert await site.publish(agent) == 2
    assert await site.prompts() == ["two", "two"]
    await site.ask(f"POST /v1/agents/{agent}:rollback", json={"number": 1})
    assert await site.prompts() == ["one", "one"]
    versions = (await site.ask(f"GET /v1/agents/{agent}/versions"))["items"]
    assert [(one["number"], one["live"]) for one in versions] == [(2, False), (1, True)]
    await site.ask(f"POST /v1/agents/{agent}:rollback", 404, json={"number": 9})


async def test_an_agent_is_changed_by_who_has_read_it_last(site: Site) -> None:
    agent = await site.make("ann")
    tag = (await site.stage.ask(f"GET /v1/agents/{agent}", FULL)).headers["etag"]
    body: dict[str, Any] = {"json": {"notes": "mine"}, "headers": {"If-Match": tag}}
    await site.ask(f"PATCH /v1/agents/{agent}", **body)
    await site.ask(f"PATCH /v1/agents/{agent}", 412, **body)
    await site.ask("POST /v1/agents", 409, json={"name": "ann"})
    await site.ask("POST /v1/agents", 422, json={"name": "bob", "draft": {"promt": "x"}})
    await site.ask("POST /v1/agents", 422, json={"name": "bob", "draft": {"voice": {"pitch": 1}}})
    await site.ask(f"GET /v1/agents/{agent}", 404, token=STRANGER)


async def test_a_device_goes_before_its_groups_and_these_before_the_site(site: Site) -> None:
    async with site.stage.database.writing() as connection:
        static = (await connection.execute(insert(GROUP).values(tenant=1, name="s").returning(GROUP.c.id))).scalar_one()
        await connection.execute(insert(GROUP_MEMBER).values({"group": static, "mac": mac_number(MAC)}))
        query = {"tenant": 1, "name": "d", "query": f"mac:{MAC}"}
        saved = (await connection.execute(insert(GROUP).values(query).returning(GROUP.c.id))).scalar_one()
    agents = {}
    for name in ("site", "static", "saved", "own"):
        agents[name] = await site.make(name, prompt=name)
        await site.publish(agents[name])

    async def assign(name: str, **whom: Any) -> None:
        await site.ask(f"POST /v1/agents/{agents[name]}:assign", json=whom)

    await assign("site", site=True)
    assert await site.prompts() == ["site", "site"]
    await assign("static", group=static)
    assert await site.prompts() == ["static", "site"]
    await assign("saved", group=saved, rank=5)
    assert await site.prompts() == ["saved", "site"]
    await assign("own", device=MAC.upper())
    assert await site.prompts() == ["own", "site"]
    await site.ask("POST /v1/assignments:remove", json={"device": MAC})
    assert await site.prompts() == ["saved", "site"]
    await site.ask(f"DELETE /v1/agents/{agents['saved']}", 204)
    assert await site.prompts() == ["static", "site"]
    async with site.stage.database.writing() as connection:
        await connection.execute(delete(GROUP_MEMBER))
    await AgentCompiler(site.stage.database, site.stage.services.store).refresh()
    assert await site.prompts() == ["site", "site"]
    listed = (await site.ask("GET /v1/assignments"))["items"]
    assert [(one["agent"], one["group"], one["site"]) for one in listed] == [
        (agents["static"], static, False),
        (agents["site"], None, True),
    ]
    await assign("own", device=MAC)
    async with site.stage.database.writing() as connection:
        await connection.execute(delete(GROUP))
    await DeviceRows(site.stage.database, 1).forget(MAC)
    await AgentCompiler(site.stage.database, site.stage.services.store).refresh()
    listed = (await site.ask("GET /v1/assignments"))["items"]
    assert [(one["agent"], one["site"]) for one in listed] == [(agents["site"], True)]
    await site.ask(f"POST /v1/agents/{agents['own']}:assign", 404, json={"device": "aa:bb:cc:dd:ee:99"})
    await site.ask(f"POST /v1/agents/{agents['own']}:assign", 422, json={})


async def test_what_is_deleted_leaves_no_assignment_and_its_name_in_the_audit_log(site: Site) -> None:
    agent = await site.make("ann", prompt="one")
    group = (await site.ask("POST /v1/groups", 201, json={"name": "g"}))["id"]
    for whom in ({"group": group}, {"device": MAC}):
        await site.ask(f"POST /v1/agents/{agent}:assign", json=whom)
    await site.ask(f"DELETE /v1/groups/{group}", 204)
    left = (await site.ask("GET /v1/assignments"))["items"]
    assert [one["device"] for one in left] == [MAC], "the next group must not get it"
    await site.ask(f"DELETE /v1/agents/{agent}", 204)
    [line] = (await site.ask("GET /v1/audit?action=agent.delete"))["items"]
    assert line["before"]["name"] == "ann"
    assert line["before"]["draft"]["prompt"] == "one"
    assert line["before"]["assignments"] == [f"device/{MAC}"]


async def test_a_group_whose_query_is_too_slow_keeps_no_other_tenant_waiting(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await DeviceRows(site.stage.database, 2).add([NewDevice(THIRD)])
    agent = await site.make("ann", prompt="one")
    window = AssignmentRows.window

    async def slow(rows: AssignmentRows, *args: Any, **more: Any) -> Any:
        if rows._tenant == 1:
            raise SlowQuery("too slow")
        return await window(rows, *args, **more)

    monkeypatch.setattr(AssignmentRows, "window", slow)
    await site.publish(agent)
    told = await site.ask(f"POST /v1/agents/{agent}:assign", json={"device": MAC})
    assert told == {"devices": 0, "more": True}
    other = await site.ask("POST /v1/agents", 201, STRANGER, json={"name": "bob", "draft": {"prompt": "two"}})
    await site.ask(f"POST /v1/agents/{other['id']}:publish", token=STRANGER)
    async with site.stage.database.writing() as connection:
        row = {"tenant": 2, "scope": "device", "ref": mac_number(THIRD), "agent": other["id"], "rank": 0}
        await connection.execute(insert(ASSIGNMENT).values(row))
    await AgentCompiler(site.stage.database, site.stage.services.store).refresh()
    assert await site.compiled.of_devices([THIRD]) != await site.compiled.of_devices([MAC])
    monkeypatch.undo()
    await AgentCompiler(site.stage.database, site.stage.services.store).refresh()
    assert await site.prompts() == ["one", None]


async def test_a_redis_that_lost_everything_gets_it_again(site: Site) -> None:
    agent = await site.make("ann", prompt="one")
    await site.publish(agent)
    await site.ask(f"POST /v1/agents/{agent}:assign", json={"device": MAC})
    await site.stage.services.store.client.flushall()
    await site.stage.services.store.load_functions()
    assert await site.prompts() == [None, None]
    assert await site.ask("POST /v1/agents:compile") == {"agents": 1, "devices": 2}
    assert await site.prompts() == ["one", None]


async def test_a_key_comes_in_and_never_out(site: Site) -> None:
    body = {"name": "house", "kind": "chat", "base_url": "http://127.0.0.1:9/v1", "key": "sk-secret-1", "model": "m"}
    provider = (await site.ask("POST /v1/providers", 201, json=body))["id"]
    shown = await site.ask(f"GET /v1/providers/{provider}")
    assert shown["has_key"] is True and "sk-secret" not in str(shown)
    agent = await site.make("ann", chat={"provider": "house"})
    await site.publish(agent)
    compiled = await site.known.find((await site.compiled.heads())[str(agent)])
    endpoint = compiled.endpoints["chat"]
    assert "sk-secret" not in (await site.compiled.document(compiled.digest) or "")
    assert Sealer(SECRET).unseal(endpoint.key) == "sk-secret-1" and endpoint.model == "m"
    await site.ask(f"PATCH /v1/providers/{provider}", json={"model": "n"})
    compiled = await site.known.find((await site.compiled.heads())[str(agent)])
    assert compiled.endpoints["chat"].model == "n"
    assert (await site.ask(f"DELETE /v1/providers/{provider}", 409))["detail"].endswith(": ann")
    thief = {"base_url": "http://127.0.0.1:8/v1"}
    assert (await site.ask(f"PATCH /v1/providers/{provider}", 422, json=thief))["code"] == "key-needed"
    await site.ask(f"PATCH /v1/providers/{provider}", json={"base_url": "http://127.0.0.1:9/v2"})
    moved = {**thief, "key": ""}
    assert (await site.ask(f"PATCH /v1/providers/{provider}", json=moved))["has_key"] is False
    proof = await site.ask(f"POST /v1/providers/{provider}:test")
    assert proof["reachable"] is False and "sk-secret" not in str(proof)
    for address in ("http://user:pw@host/v1", "http://host:0/v1", "http://:1/v1", "http://[::1/v1", "http://h:x/v1"):
        await site.ask("POST /v1/providers", 422, json={**body, "name": "x", "base_url": address})
    draft = {"voice": {"provider": "house"}}
    await site.ask(f"PATCH /v1/agents/{agent}", json={"draft": draft})
    assert "no provider house" in str(await site.ask(f"POST /v1/agents/{agent}:publish", 422))
    await site.ask(f"GET /v1/providers/{provider}", 404, token=STRANGER)


async def test_a_voice_reads_a_text_that_a_person_can_hear(site: Site) -> None:
    body = {"name": "speaker", "kind": "voice", "voices": ["anna", "ben"], "sample_rate": 16_000, "key": "sk-secret-1"}
    with run_openai_server() as server:
        server.speech(Answer([SOUND], kind="audio/pcm"))
        made = await site.ask("POST /v1/providers", 201, json={**body, "base_url": server.url})
        path = f"POST /v1/providers/{made['id']}:speak"
        sample = await site.ask(path, json={"text": "Hello"})
        with wave.open(io.BytesIO(base64.b64decode(sample["wav"]))) as sound:
            assert (sound.getframerate(), sound.getnchannels()) == (16_000, 1)
            assert sound.readframes(sound.getnframes()) == SOUND
        assert 0 < sample["first_seconds"] <= sample["seconds"]
        asked = server.requests[-1]
        assert (asked.json["voice"], asked.json["model"], asked.json["input"]) == ("anna", "tts-1", "Hello")
        assert asked.headers["authorization"] == "Bearer sk-secret-1"
        await site.ask(path, json={"text": "Hello", "voice": "ben"})
        assert server.requests[-1].json["voice"] == "ben"
        server.speech(Answer([SOUND * 500], kind="audio/pcm"))
        sample = await site.ask(path, json={"text": "Hello"})
        assert len(base64.b64decode(sample["wav"])) == 44 + LONGEST_SOUND * 16_000 * 2
        server.speech(refused(401))
        answer = await site.ask(path, 502, json={"text": "Hello"})
        assert answer["code"] == "model-failed" and "sk-secret" not in str(answer)
        await site.ask(path, 404, token=STRANGER, json={"text": "Hello"})
        await site.ask(path, 422, json={"text": "x" * 201})
        reader = await site.stage.add_token("flt_reader", "agents:read")
        await site.ask(path, 403, token=reader, json={"text": "Hello"})
    chat = await site.ask(
        "POST /v1/providers", 201, json={"name": "c", "kind": "chat", "base_url": "http://127.0.0.1:9"}
    )
    answer = await site.ask(f"POST /v1/providers/{chat['id']}:speak", 422, json={"text": "Hello"})
    assert answer["code"] == "no-endpoint"


async def test_few_voices_are_tried_at_a_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "MOST_SAMPLES", 1)
    with run_openai_server() as server:
        server.speech(Answer(then="silent"))
        body = {"name": "speaker", "kind": "voice", "base_url": server.url}
        path = f"/v1/providers/{(await site.ask('POST /v1/providers', 201, json=body))['id']}:speak"
        first = asyncio.create_task(site.stage.ask(f"POST {path}", json={"text": "Hello"}), name="first")
        while not server.requests:
            await asyncio.sleep(0.02)
        assert (await site.ask(f"POST {path}", 503, json={"text": "Hello"}))["code"] == "busy"
        first.cancel()
        await asyncio.wait({first})


async def test_a_draft_is_tried_without_counting_for_anyone(site: Site) -> None:
    agent = await site.make("ann", prompt="You are a pirate.")
    answer = await site.ask(f"POST /v1/agents/{agent}:try", json={"text": "Who are you?"})
    assert answer["text"] == "I am asked by: You are a pirate."
    assert await site.prompts() == [None, None]


async def test_what_a_trial_was_asked_and_answered_is_kept_nowhere(site: Site) -> None:
    agent = await site.make("ann", prompt="You are a pirate.")
    for _ in range(2):
        answer = await site.stage.ask(
            f"POST /v1/agents/{agent}:try", json={"text": "Who are you?"}, headers={"Idempotency-Key": "once"}
        )
        assert answer.json()["text"] == "I am asked by: You are a pirate."
        assert "Idempotency-Replayed" not in answer.headers
    async with site.stage.database.reading() as connection:
        kept = (await connection.execute(IDEMPOTENCY.select())).all()
    assert "pirate" not in str(kept)
