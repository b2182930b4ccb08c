"""The worker on a real Mosquitto with the plugin and a real Redis; its model is scripted, its edge only a mailbox."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from fleet.core.ports import CallsAsked, TextDelta, ToolCall
from fleet.errors import ProviderError
from fleet.link.mqtt_url import parse_mqtt_url
from fleet.settings import load
from fleet.store.connect import Store
from fleet.store.mailbox import Mailboxes
from fleet.tasks import running
from fleet.wire import mail
from fleet.wire.identity import Keys
from fleet.worker.app import Worker
from fleet.worker.resources import Resources
from tests.integration.worker.scripted import Device, ScriptedLlm, SilentEdge
from tests.support.mosquitto_server import MosquittoServer

HELLO = {"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": True}}
VOLUME = {
    "name": "self.audio_speaker.set_volume",
    "description": "Sets the volume.",
    "inputSchema": {
        "type": "object",
        "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["volume"],
    },
}


@dataclass
class Scene:
    device: Device
    edge: SilentEdge
    llm: ScriptedLlm
    resources: Resources

    async def discover(self, *pages: list[dict[str, Any]]) -> None:
        """Answer the worker's questions for the device's tools."""
        initialize = (await self.device.hear_type("mcp"))["payload"]
        assert initialize["method"] == "initialize"
        await self.device.answer(initialize, result={"serverInfo": {"name": "board", "version": "2.4.2"}})
        assert (await self.device.hear_type("mcp"))["payload"]["method"] == "notifications/initialized"
        for number, page in enumerate(pages, 1):
            request = (await self.device.hear_type("mcp"))["payload"]
            assert request["method"] == "tools/list"
            more = {"nextCursor": f"page {number}"} if number < len(pages) else {}
            await self.device.answer(request, result={"tools": page, **more})

    async def greet(self) -> str:
        """Open a session; return its id."""
        await self.device.say(HELLO)
        welcome = await self.device.hear_type("hello")
        opened = await self.edge.next(mail.SessionOpened)
        assert opened.session == welcome["session_id"]
        return str(welcome["session_id"])

    async def utter(self, session: str, text: str) -> str:
        """Post what the edge posts after an utterance; return the turn's id."""
        turn = secrets.token_hex(8)
        shard = self.resources.store.keys.shard(self.device.mac)
        heard = mail.UtteranceHeard(device=self.device.mac, session=session, turn=turn, text=text, language="en")
        await self.resources.mailboxes.to_shard(shard, heard)
        return turn

    async def tools(self) -> list[str]:
        async with asyncio.timeout(10):
            while not (tools := await self.resources.tools.read(self.device.mac)):
                await asyncio.sleep(0.01)
        return [tool.name for tool in tools]


@asynccontextmanager
async def scene(redis_url: str, broker: MosquittoServer, keys: Keys, **edge_state: Any) -> AsyncIterator[Scene]:
    settings = load(shards=2)
    store, llm = await Store.open(redis_url, 2), ScriptedLlm()
    resources = Resources.of(settings, keys, llm, store)
    edge = SilentEdge(resources.edges, Mailboxes(store))
    await edge.announce(**edge_state)
    worker = Worker(resources, secrets.token_hex(4), parse_mqtt_url(broker.url))
    async with running("worker", worker.run):
        async with asyncio.timeout(10):
            while not worker.ready:
                await asyncio.sleep(0.01)
        mac = ":".join(f"{byte:02x}" for byte in secrets.token_bytes(6))
        device = await Device.connect(broker, keys, mac)
        yield Scene(device, edge, llm, resources)
        await device.close()
    await store.close()


@pytest.fixture
async def stage(redis_url: str, broker: MosquittoServer, keys: Keys) -> AsyncIterator[Scene]:
    async with scene(redis_url, broker, keys) as one:
        yield one


async def test_a_device_that_connects_is_asked_for_its_tools_page_by_page(stage: Scene) -> None:
    await stage.discover([VOLUME], [{**VOLUME, "name": "self.b"}, {"broken": 1}], [{**VOLUME, "name": "self.c"}])
    assert await stage.tools() == ["self.audio_speaker.set_volume", "self.b", "self.c"]


async def test_a_hello_is_answered_with_a_fresh_key_each_time(stage: Scene) -> None:
    await stage.device.say(HELLO)
    first = await stage.device.hear_type("hello")
    await stage.device.say(HELLO)
    second = await stage.device.hear_type("hello")
    assert first["udp"]["server"] == "h.example"
    assert first["udp"]["nonce"].startswith("01000000")
    assert first["udp"]["nonce"].endswith("0" * 16)
    for part in ("key", "nonce"):
        assert first["udp"][part] != second["udp"][part]
    opened = [await stage.edge.next(mail.SessionOpened) for _ in range(2)]
    assert [one.session for one in opened] == [first["session_id"], second["session_id"]]


async def test_without_an_edge_a_hello_is_refused_in_words(redis_url: str, broker: MosquittoServer, keys: Keys) -> None:
    async with scene(redis_url, broker, keys, draining=True) as one:
        await one.device.say(HELLO)
        welcome = await one.device.hear_type("hello")
        assert (await one.device.hear_type("goodbye"))["session_id"] == welcome["session_id"]
        assert (await one.device.hear_type("alert"))["emotion"] == "sad"


async def test_a_turn_calls_the_devices_tool_and_speaks_the_answer(stage: Scene) -> None:
    await stage.discover([VOLUME])
    await stage.tools()
    session = await stage.greet()
    call = CallsAsked((ToolCall("c1", "audio_speaker_set_volume", '{"volume": 30}'),))
    stage.llm.script = [[call], [TextDelta("Okay, the volume"), TextDelta(" is 30 now. Enjoy!")]]
    turn = await stage.utter(session, "set the volume to 30")

    request = (await stage.device.hear_type("mcp"))["payload"]
    assert request["method"] == "tools/call"
    assert request["params"] == {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 30}}
    await stage.device.answer(request, result={"content": [{"type": "text", "text": "true"}], "isError": False})

    assert (await stage.edge.next(mail.SpeechBegun)).turn == turn
    spoken = []
    async with asyncio.timeout(10):
        while not isinstance(last := await anext(stage.edge._mail), mail.SpeechEnded):
            assert isinstance(last, mail.SentenceReady)
            spoken.append(last)
    assert " ".join(sentence.text for sentence in spoken).startswith("Okay")
    assert [sentence.index for sentence in spoken] == list(range(len(spoken)))
    assert last.index == len(spoken)
    assert [offer.name for offer in stage.llm.asked[0][1]] == ["audio_speaker_set_volume"]
    assert stage.llm.asked[1][0][-1].text == "true"


async def test_a_model_that_breaks_off_leads_to_an_apology_and_an_end(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[TextDelta("The answer is. "), ProviderError("broke off", retryable=False)]]
    await stage.utter(session, "tell me")
    await stage.edge.next(mail.SpeechBegun)
    texts = []
    async with asyncio.timeout(10):
        while not isinstance(last := await anext(stage.edge._mail), mail.SpeechEnded):
            texts.append(last.text)
    assert texts[0].startswith("The answer")
    assert "Sorry" in " ".join(texts)


async def test_an_empty_answer_speaks_nothing_and_ends(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[]]
    await stage.utter(session, "hm")
    assert (await stage.edge.next(mail.SpeechEnded)).index == 0


async def test_an_abort_ends_the_turn_and_closes_the_models_stream(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[TextDelta("Once upon a time. "), asyncio.Event()]]
    await stage.utter(session, "a story")
    await stage.edge.next(mail.SpeechBegun)
    await stage.device.say({"type": "abort", "session_id": session})
    async with asyncio.timeout(10):
        await stage.llm.closed.wait()


async def test_a_message_of_an_unknown_session_is_answered_with_its_goodbye(stage: Scene) -> None:
    await stage.device.say({"type": "listen", "state": "start", "mode": "auto", "session_id": "stale"})
    assert (await stage.device.hear_type("goodbye"))["session_id"] == "stale"


async def test_an_utterance_that_is_delivered_again_is_answered_once(stage: Scene) -> None:
    session = await stage.greet()
    stage.llm.script = [[TextDelta("Once. ")], [TextDelta("Twice. ")]]
    shard = stage.resources.store.keys.shard(stage.device.mac)
    heard = mail.UtteranceHeard(device=stage.device.mac, session=session, turn="same", text="hi")
    for _ in range(2):
        await stage.resources.mailboxes.to_shard(shard, heard)
    await stage.edge.next(mail.SpeechBegun)
    await stage.edge.next(mail.SentenceReady)
    await stage.edge.next(mail.SpeechEnded)
    assert await stage.greet()
    assert len(stage.llm.asked) == 1


async def test_a_session_whose_edge_is_gone_is_ended_at_the_next_word(stage: Scene) -> None:
    session = await stage.greet()
    await stage.resources.edges.retire("edge-1")
    listen = {"type": "listen", "state": "start", "mode": "auto", "session_id": session}
    async with asyncio.timeout(10):
        while (await stage.resources.sessions.read(stage.device.mac)) is not None:
            await stage.device.say(listen)
            await asyncio.sleep(0.05)
    assert (await stage.device.hear_type("goodbye"))["session_id"] == session


async def test_half_a_tool_list_is_kept_and_asked_for_again(stage: Scene) -> None:
    initialize = (await stage.device.hear_type("mcp"))["payload"]
    await stage.device.answer(initialize, result={"serverInfo": {"name": "board", "version": "2.4.2"}})
    await stage.device.hear_type("mcp")
    first = (await stage.device.hear_type("mcp"))["payload"]
    await stage.device.answer(first, result={"tools": [VOLUME], "nextCursor": "more"})
    second = (await stage.device.hear_type("mcp"))["payload"]
    await stage.device.answer(second, error={"message": "too big"})
    assert await stage.tools() == ["self.audio_speaker.set_volume"]
    await stage.device.say(HELLO)
    assert (await stage.device.hear_type("mcp"))["payload"]["method"] == "initialize"


async def test_an_abort_is_always_answered_with_a_stop(stage: Scene) -> None:
    await stage.device.say({"type": "abort", "session_id": "stale"})
    stops = [await stage.device.hear_type("tts") for _ in range(2)]  # the first one greets every device that connects
    assert [(stop["state"], stop["session_id"]) for stop in stops] == [("stop", ""), ("stop", "stale")]


async def test_a_devices_goodbye_is_never_answered(stage: Scene) -> None:
    session = await stage.greet()
    await stage.device.say({"type": "goodbye", "session_id": "stale"})
    await stage.device.say({"type": "goodbye", "session_id": session})
    assert (await stage.edge.next(mail.SessionClosed)).session == session
    await stage.device.say({"type": "listen", "state": "stop", "session_id": "probe"})
    assert (await stage.device.hear_type("goodbye"))["session_id"] == "probe"


@pytest.mark.parametrize("junk", [b"", b"{", b"[1]", b'{"type":7}', b"\xff\xfe", b'{"type":"mcp","payload":{"id":1}}'])
async def test_junk_costs_nothing(stage: Scene, junk: bytes) -> None:
    await stage.device.say(junk)
    assert await stage.greet()


async def test_a_silent_session_is_ended_with_its_own_id(stage: Scene) -> None:
    session = await stage.greet()
    silent = mail.SessionSilent(device=stage.device.mac, session=session, reason="idle")
    await stage.resources.mailboxes.to_shard(stage.resources.store.keys.shard(stage.device.mac), silent)
    assert (await stage.device.hear_type("goodbye"))["session_id"] == session
    assert await stage.resources.sessions.read(stage.device.mac) is None
