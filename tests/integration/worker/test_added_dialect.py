"""A dialect that is one file and one line of the table is served like the others."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fleet.wire import dialects, edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.registrar import type_text
from tests.integration.worker.scene import Scene, asks, says, scene
from tests.integration.worker.scripted import PATIENCE, Device
from tests.support.morse_dialect import DIALECT
from tests.support.mosquitto_server import MosquittoServer


@pytest.fixture
async def stage(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    monkeypatch.setitem(dialects.DIALECTS, DIALECT.name, DIALECT)
    async with scene(redis_url, broker, keys) as one:
        await one.device.close()
        one.device = await one.unknown_device()
        yield one


async def hear(device: Device, kind: str) -> dict[str, Any]:
    """Return the next frame, which must be of this kind; every frame must be in the device's own dialect."""
    frame = await device.hear()
    assert frame["m"] == kind, frame
    return frame


async def test_its_tools_are_registered_called_at_once_and_its_text_comes_in_pieces(stage: Scene) -> None:
    await stage.device.say({"m": "can", "id": "x", "what": ["self.camera.key"]})
    assert await hear(stage.device, "r") == {"m": "r", "id": "x"}
    assert (await stage.resources.devices.read(stage.device.mac)).dialect == "morse"
    stage.llm.script = [asks("camera_key"), says("It is so.")]
    await type_text(stage, "press it")
    # A xiaozhi's tool of this name would be sent a token for its camera first.
    call = await hear(stage.device, "do")
    assert call["what"] == "self.camera.key"
    await stage.device.say({"m": "r", "id": call["id"], "said": "dash"})
    assert [(await hear(stage.device, "qtc"))["kind"] for _ in range(2)] == ["chunk", "final"]
    assert stage.llm.asked[1][0][-1].text == "dash"


async def test_its_session_opens_and_ends_in_its_own_words(stage: Scene) -> None:
    await stage.device.say({"m": "cq"})
    session = (await hear(stage.device, "de"))["s"]
    opened = await stage.session()
    assert (opened.session, opened.dialect) == (session, "morse")
    await stage.device.say({"m": "k", "s": session})
    assert (await stage.edge.next(edge_messages.StartListeningCommand)).session == session
    await stage.device.say({"m": "k", "s": "another"})
    assert await hear(stage.device, "sk") == {"m": "sk", "s": "another"}
    silent = edge_messages.SessionSilentEvent(device=stage.device.mac, session=session, reason="idle")
    await stage.post(silent)
    assert await hear(stage.device, "sk") == {"m": "sk", "s": session}


async def test_it_is_not_asked_for_its_tools_when_it_connects(stage: Scene) -> None:
    await stage.device.say({"m": "can", "id": "1", "what": ["key"]})
    await hear(stage.device, "r")
    await stage.reconnect()
    await stage.device.say({"m": "can", "id": "2", "what": ["key"]})
    async with asyncio.timeout(PATIENCE):
        assert await hear(stage.device, "r") == {"m": "r", "id": "2"}
