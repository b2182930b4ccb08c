"""The examples of docs/protocol/gateway.md are messages that the gateway's codec reads and writes."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args

from fleet.wire.gateway import RegisterTools, Request, RequestRefused, receive
from fleet.wire.gateway_messages import Message, StatusName, write
from fleet.wire.gateway_tools import unpack_tool
from fleet.wire.mcp import ToolSpec
from tests.support.documents import ROOT
from tests.support.every import for_every
from tests.support.gateway_messages import faults

PAGE = (ROOT / "docs/protocol/gateway.md").read_text(encoding="utf-8")
KINDS = {kind.model_fields["type"].default: kind for kind in get_args(Message)}
SENDERS = re.split(r"^### ", PAGE.partition("## An example of every message\n")[2].partition("\n## ")[0], flags=re.M)


def examples(sender: str) -> Iterator[str]:
    (section,) = [part for part in SENDERS if part.startswith(f"What the {sender} sends\n")]
    yield from re.findall(r"^```json\n(.*?)^```", section, re.M | re.S)


REQUESTS, MESSAGES = list(examples("client")), [json.loads(frame) for frame in examples("server")]


@for_every("frame", REQUESTS)
def test_the_gateway_understands_every_field_of_a_request(frame: str) -> None:
    request = receive(frame)
    assert not isinstance(request, RequestRefused), request
    if isinstance(request, RegisterTools):
        assert all(isinstance(one, str) and isinstance(unpack_tool(one), ToolSpec) for one in request.tools)
    assert set(json.loads(frame)) - {"type"} <= set(_names(request))


@for_every("message", MESSAGES)
def test_the_gateway_writes_this_message(message: dict[str, Any]) -> None:
    fields = {name: value for name, value in message.items() if name != "timestamp"}
    time = datetime.fromisoformat(message["timestamp"])
    written = write(KINDS[message["type"]].model_validate(fields, strict=True), time)
    assert list(json.loads(written).items()) == list(message.items())
    assert faults(message) == []


def test_there_is_an_example_of_every_kind() -> None:
    assert {type(receive(frame)) for frame in REQUESTS} == set(get_args(Request))
    assert {message["type"] for message in MESSAGES} == set(KINDS)
    assert {message["status"] for message in MESSAGES if message["type"] == "status"} == set(get_args(StatusName))


def _names(request: Request) -> Iterator[str]:
    """Give the fields of a request as the document calls them."""
    for name in request.__dataclass_fields__:
        yield "session_id" if name == "session" else name
