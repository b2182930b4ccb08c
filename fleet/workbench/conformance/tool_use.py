"""Turns in which the scripted model calls tools of a device, and the outcomes that it is given."""

import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.conformance.context import Answer, CheckContext, discovered, turn
from fleet.workbench.conformance.steering.completion import tool_names
from fleet.workbench.conformance.steering.records import Asked
from fleet.workbench.conformance.steering.script import Call, Round, letters
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.messages.message import JsonObject, item
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.tools import Intercept, ScriptedTools
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.mcp_server import answer as result
from fleet.workbench.sim.tools.tool import Arguments, Outcome, Tool

_FAILURE = re.compile(r"\b(error|fail\w*|unknown|unable|unreachable|not sent|timed? ?-?out)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """What came of a turn with calls.

    `results` are the calls' outcomes as the model was given them, in the order of the calls.
    """

    results: list[str]
    asked: list[Asked]
    answer: Answer


async def _done(_: Board, __: Arguments) -> Outcome:
    return True


def tool(name: str, description: str = "Does what its name says.") -> Tool:
    """Return a tool without parameters that succeeds."""
    return Tool(name, description, _done)


@asynccontextmanager
async def tooled(
    context: CheckContext, *tools: Tool, intercept: Mapping[str, Intercept] | None = None
) -> AsyncIterator[ScriptedDevice]:
    """Give a connected device with these tools, or its profile's own, in a session and with its tools known.

    Its board has a name of its own, as servers may keep the tools of a board.
    """
    async with context.scripted_device(connect=False, board=f"conformance-{secrets.token_hex(4)}") as device:
        device.tools = ScriptedTools(device.profile, device.clock, tools or None)
        device.tools.intercept.update(intercept or {})
        if code := await device.connect():
            raise Failed(f"the broker refused the connection with code {code}")
        await device.hello()
        await discovered(device)
        yield device


async def ask(context: CheckContext, device: ScriptedDevice, *calls: Call, seconds: float = 20.0) -> ToolTurn:
    """Let the model call tools, all at once, in one turn; without calls it only answers.

    Args:
        context: The check's.
        device: A device from `tooled`.
        calls: Names without `self.`, which some servers leave out.
        seconds: Longest wait for the answer to begin.

    Raises:
        Failed: The turn is not answered, or the model is not given the outcomes of the calls.
    """
    rounds = (Round(calls=calls), Round("done")) if calls else (Round("nothing to do"),)
    with context.scene(rounds=rounds) as scene:
        answer = await turn(device, scene, seconds)
        asked = context.steering.asked(scene.mark)
    require(len(asked) >= len(rounds), f"the chat model was asked {len(asked)} times in place of {len(rounds)}")
    results = results_of(asked[-1]) if calls else []
    require(len(results) == len(calls), f"the chat model was told {len(results)} outcomes of {len(calls)} calls")
    return ToolTurn(results, asked, answer)


def offered(asked: Asked) -> list[str]:
    """Return the names of the offered tools, as they were sent."""
    return tool_names(asked.tools)


def is_offered(name: str, asked: Asked) -> bool:
    """Whether a tool is offered, under whatever name; `name` without `self.`."""
    return any(letters(one).endswith(letters(name)) for one in offered(asked))


def number_of(request: JsonObject) -> int:
    """Return a request's id."""
    id_ = item(request, "id")
    return id_ if isinstance(id_, int) else 0


def page(request: JsonObject, *tools: Tool, cursor: str = "") -> str:
    """Return a page of a tool list, with a cursor for the next one."""
    listed: JsonObject = {"tools": [one.describe() for one in tools]}
    if cursor:
        listed["nextCursor"] = cursor
    return json.dumps({"jsonrpc": "2.0", "id": number_of(request), "result": listed})


def saying(text: str) -> Intercept:
    """Return an intercept that answers a call with a text."""
    return lambda request: result(number_of(request), text)


def is_failure(told: str) -> bool:
    """Whether an outcome reads as a failure."""
    return bool(_FAILURE.search(told))


def results_of(asked: Asked) -> list[str]:
    """Return the outcomes that a request ends with, up to the calls."""
    told: list[str] = []
    for message in reversed(asked.messages):
        if message.get("role") == "assistant":
            break
        if message.get("role") == "tool":
            told.insert(0, _text(message.get("content")))
    return told


def _text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return " ".join(str(part["text"]) for part in parts if "text" in part)
