"""A device that registers its tools, for tests of the worker."""

import json
import secrets
from typing import Any

from fleet.wire import edge_messages
from tests.integration.worker.scene import Scene
from tests.integration.worker.scripted import Device

VOLUME = {
    "name": "amplify_volume",
    "description": "Sets the volume.",
    "main_type": "remote",
    "sub_type": "control",
    "parameters": {
        "type": "object",
        "properties": {"level": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["level"],
    },
}
LEVEL = {"name": "read_level", "description": "Reads the volume.", "main_type": "remote", "sub_type": "query"}


async def send(device: Device, frame: dict[str, Any]) -> None:
    await device.say({"jsonrpc": "2.0", **frame})


async def ask(device: Device, *tools: dict[str, Any], number: Any = "client-reg-001", **params: Any) -> None:
    """Ask for a registration."""
    named = {"mac_addr": device.mac.upper().replace(":", "-"), "tools": list(tools), **params}
    await send(device, {"method": "mcp/registerTools", "params": named, "id": number})


async def register(device: Device, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Register, and return the answer."""
    await ask(device, *tools, **more)
    return await hear(device)


async def hear(device: Device) -> dict[str, Any]:
    """Return the next JSON-RPC frame; skips what a device is told before it is known how it speaks."""
    while "jsonrpc" not in (frame := await device.hear()):
        pass
    return frame


async def hear_call(device: Device) -> dict[str, Any]:
    """Return the next call."""
    frame = await hear(device)
    assert frame["method"] == "mcp/tool/execute", frame
    return frame


async def hear_messages(device: Device) -> list[tuple[str, str]]:
    """Return type and content of what the model says until its end."""
    said: list[tuple[str, str]] = []
    while not said or said[-1][0] != "final":
        frame = await hear(device)
        assert frame["method"] == "mcp/ai/message", frame
        assert "id" not in frame
        said.append((frame["params"]["type"], frame["params"]["content"]))
    return said


async def type_text(stage: Scene, text: str, *, polite: bool = False) -> str:
    """Post what the api posts; return the turn's id."""
    turn = secrets.token_hex(8)
    await stage.resources.replies.expect(stage.device.mac, turn)
    about = {"device": stage.device.mac, "session": "", "turn": turn, "text": text}
    await stage.post(edge_messages.UtteranceEvent(**about, typed=True, polite=polite))
    return turn


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
