"""Tool schemas for the demo model's tests: a stock device's, and inventions that nothing in the model knows of."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fleet.workbench.demo_llm.results import ToolText
from fleet.workbench.demo_llm.schemas import Tool, understand
from fleet.workbench.demo_llm.turn import Choice, Conversation, Done, reply

STATUS = json.dumps(
    {
        "audio_speaker": {"volume": 70},
        "screen": {"brightness": 75, "theme": "light"},
        "battery": {"level": 80, "charging": False},
        "network": {"type": "wifi", "ssid": "Home", "signal": "strong"},
    }
)
PHOTO = json.dumps({"success": True, "response": "I see a cat."})

Schema = dict[str, Any]
Calls = list[tuple[str, dict[str, Any]]]


def now() -> datetime:
    return datetime(2025, 11, 21, 15, 5, tzinfo=UTC)


def whole(low: int, high: int, description: str = "") -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


def text(description: str = "") -> Schema:
    return {"type": "string", "description": description}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def switch() -> Schema:
    return {"type": "boolean"}


def tool(name: str, description: str = "", /, **properties: Schema) -> Tool:
    """Return a tool all of whose properties are required."""
    return understand(name, description, parameters(**properties))


def parameters(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def offer(name: str, description: str = "", /, **properties: Schema) -> Schema:
    """Return a tool as a request offers it."""
    function = {"name": name, "description": description, "parameters": parameters(**properties)}
    return {"type": "function", "function": function}


_STOCK: tuple[tuple[str, str, dict[str, Schema]], ...] = (
    (
        "get_device_status",
        "Provides the real-time information of the device, including the current status of the audio speaker, screen, "
        "battery, network, etc.\nUse it to answer questions about the current condition, e.g. what the current volume "
        "is, and as the first step to turn up / down the volume.",
        {},
    ),
    (
        "audio_speaker_set_volume",
        "Set the volume of the audio speaker. If the current volume is unknown, call `self.get_device_status` first.",
        {"volume": whole(0, 100)},
    ),
    ("screen_set_brightness", "Set the brightness of the screen.", {"brightness": whole(0, 100)}),
    ("screen_set_theme", "Set the theme of the screen. It can be `light` or `dark`.", {"theme": {"type": "string"}}),
    (
        "camera_take_photo",
        "Take a photo and explain it. Use this tool after the user asks you to see something.\nArgs:\n"
        "  `question`: The question that you want to ask about the photo.",
        {"question": {"type": "string"}},
    ),
)


def stock_tools() -> tuple[Tool, ...]:
    """Return what a stock device offers, as the worker names it."""
    return tuple(tool(name, description, **properties) for name, description, properties in _STOCK)


def stock_offers() -> list[Schema]:
    return [offer(name, description, **properties) for name, description, properties in _STOCK]


def answer_of(name: str, answers: Mapping[str, str]) -> str:
    if name in answers:
        return answers[name]
    return STATUS if "status" in name else PHOTO if "photo" in name else "true"


def talk(
    utterance: str,
    tools: tuple[Tool, ...],
    *,
    answers: Mapping[str, str] | None = None,
    earlier: tuple[str, ...] = (),
    last_answer: str = "",
) -> tuple[Calls, str]:
    """Run one turn to its end; return the calls and the answer."""
    calls: Calls = []
    done: list[Done] = []
    for rounds in range(8):
        conversation = Conversation(utterance, earlier, last_answer, tuple(done), rounds)
        message = reply(conversation, tools, Choice(), now)
        if not message.calls:
            return calls, message.text
        for call in message.calls:
            calls.append((call.name, dict(call.arguments)))
            done.append(Done(call.name, call.arguments, ToolText(answer_of(call.name, answers or {}))))
    raise AssertionError(f"no end of calls: {calls}")
