"""JSON from devices, from other processes of ours, and (in the simulator) from the server."""

import json
import re
from random import Random
from typing import Any

import msgspec
import pydantic_core
from pydantic import TypeAdapter

from fleet.core.ports import ToolCall
from fleet.core.toolbox import Prepared, Refusal, Toolbox
from fleet.wire import edge_messages, jsonrpc, mcp, messages, presence
from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.workbench.sim.messages import message as sim_message
from tests.fuzz import damage
from tests.fuzz.target import Target, assert_sendable

_ANY_EVENT: Any = messages.DeviceEvent.__args__
_TOOLS: TypeAdapter[tuple[mcp.ToolSpec, ...]] = TypeAdapter(tuple[mcp.ToolSpec, ...])
_OFFERED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAC = "aa:bb:cc:dd:ee:ff"


def read_strictly(frame: bytes) -> Any:
    """Read JSON as strict as any reader is: no NaN, no infinity, no half surrogate pair, nothing after it."""
    document = pydantic_core.from_json(frame, allow_inf_nan=False)
    json.dumps(document, allow_nan=False)
    return document


def check_frame(frame: bytes) -> None:
    """A device's frame becomes an event, and the event can be passed on, answered, and written down."""
    event = DIALECT.receive(frame)
    assert isinstance(event, _ANY_EVENT)
    assert_sendable(event)
    match event:
        case messages.ResponseEvent():
            check_result(event.result)
        case messages.ListenStartEvent() | messages.ListenStopEvent() | messages.GoodbyeEvent():
            read_strictly(DIALECT.send(messages.GoodbyeCommand(event.session)))
        case messages.DetectEvent():
            msgspec.json.encode(edge_messages.DetectedTextCommand(device=_MAC, session=event.session, text=event.text))
        case messages.AbortEvent():
            msgspec.json.encode(
                edge_messages.AbortAnswerCommand(device=_MAC, session=event.session, reason=event.reason)
            )
        case messages.HelloEvent():
            assert (event.uplink.frame_ms, event.uplink.sample_rate) > (0, 0)
        case messages.MalformedEvent():
            assert len(event.reason) < 64


def check_result(result: Any) -> None:
    """Each reader of an answer takes every answer, whatever was asked."""
    assert all(isinstance(part, str) for part in mcp.parse_server(result))
    outcome = mcp.parse_result(result)
    assert len(outcome.text) <= mcp.LARGEST_RESULT + 64
    assert_sendable(outcome)
    page = mcp.parse_page(result)
    if page is None:
        return
    assert_sendable(page.cursor)
    # Kept in Redis between two readings.
    tools = _TOOLS.validate_json(_TOOLS.dump_json(page.tools))
    assert [tool.name for tool in tools] == [tool.name for tool in page.tools]
    box = Toolbox(tools)
    assert all(_OFFERED.fullmatch(offer.name) for offer in box.offers)
    for offer in box.offers:
        assert_call(box, ToolCall("c", offer.name, '{"volume": "30"}'))


def check_jsonrpc(frame: bytes) -> None:
    """The same for whoever reads JSON less strictly before it."""
    try:
        payload = json.loads(frame)
    except (ValueError, RecursionError):
        return
    event = jsonrpc.receive(payload)
    assert isinstance(
        event, (messages.ResponseEvent, messages.NotificationEvent, messages.IgnoredEvent, messages.MalformedEvent)
    )
    if isinstance(event, messages.ResponseEvent):
        mcp.parse_server(event.result)
        mcp.parse_result(event.result)
        mcp.parse_page(event.result)


def make_call(random: Random) -> tuple[bytes, str]:
    """Return a tool list as its device announces it, and arguments as a model writes them."""
    case = damage.document(random, "tools.jsonl")
    tools = damage.damage_document(random, {"tools": case["tools"]}) if random.random() < 0.5 else None
    arguments = damage.damage_document(random, case["arguments"])
    if random.randrange(4) == 0:
        arguments = damage.damage_bytes(random, arguments.encode(errors="replace")).decode(errors="replace")
    return (tools or json.dumps({"tools": case["tools"]})).encode(errors="surrogatepass"), arguments


def check_call(case: tuple[bytes, str]) -> None:
    """What the toolbox lets pass can be sent, is strict JSON, and is no deeper than a device can read."""
    announced, arguments = case
    event = DIALECT.receive(b'{"type":"mcp","payload":{"id":1,"result":' + announced + b"}}")
    page = mcp.parse_page(event.result) if isinstance(event, messages.ResponseEvent) else None
    box = Toolbox(page.tools if page else ())
    for name in [offer.name for offer in box.offers] + ["nothing"]:
        assert_call(box, ToolCall("c", name, arguments))


def assert_call(box: Toolbox, call: ToolCall) -> None:
    prepared = box.prepare(call)
    if isinstance(prepared, Refusal):
        assert_sendable(prepared.reason)
        return
    assert isinstance(prepared, Prepared)
    sent = read_strictly(DIALECT.send(messages.CallToolCommand(1, prepared.tool.name, prepared.arguments)))
    assert sent["payload"]["params"]["arguments"] == prepared.arguments


def check_mail(letter: bytes) -> None:
    decoders: tuple[msgspec.json.Decoder[Any], ...] = (edge_messages.EDGE_COMMANDS, edge_messages.EDGE_EVENTS)
    for decoder in decoders:
        try:
            read = decoder.decode(letter)
        except (ValueError, RecursionError):  # `DecodeError` is a ValueError, and so are faults of UTF-8
            continue
        assert decoder.decode(msgspec.json.encode(read)) == read


def check_presence(payload: bytes) -> None:
    found = presence.parse(payload)
    assert found is None or 0 <= found.epoch < 2**53


def check_server_message(payload: bytes) -> None:
    found = sim_message.parse(payload)
    for finding in sim_message.check(found, len(payload), "s1") if found else ():
        assert all(isinstance(part, str) for part in finding)


TARGETS = (
    Target("frame", lambda random: damage.json_bytes(random, "device.jsonl"), check_frame, 25),
    Target("jsonrpc", lambda random: damage.json_bytes(random, "jsonrpc.jsonl"), check_jsonrpc, 20),
    Target("toolcall", make_call, check_call, 10),
    Target("mail", lambda random: damage.json_bytes(random, "mail.jsonl"), check_mail, 6),
    Target("presence", lambda random: damage.json_bytes(random, "presence.jsonl"), check_presence, 3),
    Target("server", lambda random: damage.json_bytes(random, "server.jsonl"), check_server_message, 5),
)
