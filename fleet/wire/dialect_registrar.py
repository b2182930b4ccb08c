"""The dialect of devices that announce their tools themselves: JSON-RPC 2.0 frames, both ways.

A device sends `mcp/registerTools`, receives `mcp/tool/execute`, and reads the model's answer from `mcp/ai/message`. A
device with a microphone opens its sessions as xiaozhi devices do, with frames that have a `type`. Those are read and
written as in the xiaozhi dialect.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fleet.wire import dialect_xiaozhi
from fleet.wire.dialect import Capabilities
from fleet.wire.json_text import LARGEST_FRAME, dump, parse
from fleet.wire.jsonrpc import BAD_PARAMS, INVALID_REQUEST, NO_METHOD, NOT_JSON, error_text, id_text
from fleet.wire.mcp import LARGEST_LIST, LONGEST_DESCRIPTION, LONGEST_NAME, ToolSpec, is_acceptable
from fleet.wire.messages import (
    AiMessageCommand,
    BadRequestEvent,
    CallToolCommand,
    DeviceCommand,
    DeviceEvent,
    ErrorCommand,
    InitializeCommand,
    InitializedCommand,
    ListToolsCommand,
    MalformedEvent,
    NotificationEvent,
    RegisteredCommand,
    RegisterToolsEvent,
    RequestId,
    ResponseEvent,
)
from fleet.wire.topics import canonical_mac

NAME = "registrar"
REGISTER = "mcp/registerTools"
EXECUTE = "mcp/tool/execute"
MESSAGE = "mcp/ai/message"

MOST_TOOLS = 256
LONGEST_REQUEST_ID = 128
"""Characters or digits; the answer repeats the id unchanged."""
_BEYOND_IDS: Final = 10**LONGEST_REQUEST_ID

_DONE: Final = "Tools were successfully registered."
_NAMED: Final = 8
_CALL: Final = "call-"
"""Prefix of the ids of calls: they are texts and differ from the ids that devices use."""


def _text(value: object) -> object:
    return value if isinstance(value, str) else ""


def _members(value: object) -> object:
    return {} if value is None else value


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _Tool(_Part):
    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    description: Annotated[str, BeforeValidator(_text)] = ""
    main_type: Literal["remote", "local"] = "remote"
    sub_type: Literal["control", "query"] = "query"
    parameters: Annotated[dict[str, Any], BeforeValidator(_members)] = Field(default_factory=dict)


class _Login(_Part):
    """An extension of fleet: proves a client's MAC over a WebSocket. Over MQTT the broker has checked the password."""

    username: str
    password: str


class _Registration(_Part):
    mac_addr: str | None = None
    auth: _Login | None = None
    tools: Annotated[list[_Tool], Field(max_length=MOST_TOOLS)]


class RegistrarDialect:
    """Devices that register their tools."""

    name = NAME
    capabilities = Capabilities(text="pieces")
    mark = REGISTER.encode()

    def claims(self, document: object) -> bool:
        return isinstance(document, dict) and "jsonrpc" in document

    def receive(self, frame: bytes) -> DeviceEvent:
        if len(frame) > LARGEST_FRAME:
            return BadRequestEvent(None, INVALID_REQUEST, f"the frame is longer than {LARGEST_FRAME} bytes")
        try:
            document = parse(frame)
        except (ValueError, RecursionError):
            return BadRequestEvent(None, NOT_JSON, "the frame is not JSON")
        return self.read(document)

    def read(self, document: object) -> DeviceEvent:
        if not isinstance(document, dict):
            return BadRequestEvent(None, INVALID_REQUEST, "the frame is no JSON-RPC object; batches are not taken")
        if "jsonrpc" not in document and isinstance(document.get("type"), str):
            return dialect_xiaozhi.DIALECT.read(document)
        if "method" not in document and ("result" in document or "error" in document):
            return _answer(document)
        request_id = _id(document)
        if document.get("jsonrpc") != "2.0":
            return BadRequestEvent(request_id, INVALID_REQUEST, 'the member "jsonrpc" must be "2.0"')
        method = document.get("method")
        if not isinstance(method, str):
            return BadRequestEvent(request_id, INVALID_REQUEST, 'the member "method" must be a text')
        return _request(method, document, request_id)

    def send(self, command: DeviceCommand) -> bytes:
        match command:
            case RegisteredCommand():
                result = {"status": "registered", "message": _confirmation(command.provided)}
                return dump({"jsonrpc": "2.0", "id": command.id, "result": result})
            case ErrorCommand():
                error = {"code": command.code, "message": command.reason}
                return dump({"jsonrpc": "2.0", "id": command.id, "error": error})
            case AiMessageCommand():
                params = {"type": command.kind, "content": command.text}
                return dump({"jsonrpc": "2.0", "method": MESSAGE, "params": params})
            case CallToolCommand():
                call = {"tool_name": command.name, "tool_input": command.arguments}
                return dump({"jsonrpc": "2.0", "method": EXECUTE, "params": call, "id": f"{_CALL}{command.id}"})
            case InitializeCommand() | InitializedCommand() | ListToolsCommand():
                return b""
            case _:
                return dialect_xiaozhi.DIALECT.send(command)


def _id(document: dict[str, Any]) -> RequestId | None:
    """Return a request's id, None if it has none or one that JSON-RPC does not allow."""
    request_id = document.get("id")
    if isinstance(request_id, str):
        return request_id if len(request_id) <= LONGEST_REQUEST_ID else None
    if isinstance(request_id, bool) or not isinstance(request_id, int | float):
        return None
    # A comparison works for integers of any length and for infinity; math.isfinite raises beyond 308 digits.
    return request_id if abs(request_id) < _BEYOND_IDS else None


def _answer(document: dict[str, Any]) -> DeviceEvent:
    """Return a device's answer. One without an id is malformed and gets no error response, as it is not a request."""
    request_id = _id(document)
    if request_id is None:
        return MalformedEvent("JSON-RPC answer without id")
    name = id_text(request_id.removeprefix(_CALL) if isinstance(request_id, str) else request_id)
    error = document.get("error")
    if error is not None and error is not False:
        return ResponseEvent(name, error=error_text(error), plain=True)
    return ResponseEvent(name, result=document.get("result"), plain=True)


def _request(method: str, document: dict[str, Any], request_id: RequestId | None) -> DeviceEvent:
    if method == REGISTER:
        return _registration(document, request_id)
    if request_id is not None:
        return BadRequestEvent(request_id, NO_METHOD, f"there is no method {method[:LONGEST_REQUEST_ID]!r}")
    if document.get("id") is not None:
        return BadRequestEvent(None, INVALID_REQUEST, 'the member "id" must be a text or a number')
    return NotificationEvent(method, document.get("params"))


def _registration(document: dict[str, Any], request_id: RequestId | None) -> DeviceEvent:
    if request_id is None:
        return BadRequestEvent(None, INVALID_REQUEST, f'{REGISTER} needs an "id", a text or a number, to be confirmed')
    try:
        asked = _Registration.model_validate(document.get("params"))
    except ValidationError as error:
        return BadRequestEvent(request_id, BAD_PARAMS, _explain(error))
    except RecursionError:
        return BadRequestEvent(request_id, BAD_PARAMS, "params are nested too deeply")
    mac = canonical_mac(asked.mac_addr[:64]) if asked.mac_addr is not None else None
    if asked.mac_addr is not None and mac is None:
        return BadRequestEvent(request_id, BAD_PARAMS, "params.mac_addr is no MAC")
    for at, tool in enumerate(asked.tools):
        if not is_acceptable(tool.parameters):
            return BadRequestEvent(
                request_id, BAD_PARAMS, f"params.tools.{at}.parameters: the schema is too large or too deep"
            )
    if sum(_size(tool) for tool in asked.tools) > LARGEST_LIST:
        return BadRequestEvent(
            request_id, BAD_PARAMS, f"params.tools: all tools together are longer than {LARGEST_LIST} bytes"
        )
    # If a name comes twice, the last tool counts, as with two registrations.
    tools = {tool.name: tool for tool in asked.tools}.values()
    remote = tuple(_spec(tool) for tool in tools if tool.main_type == "remote")
    provided = tuple(tool.name for tool in tools if tool.main_type == "local")
    login = (asked.auth.username, asked.auth.password) if asked.auth else None
    return RegisterToolsEvent(request_id, mac, remote, provided, login)


def _size(tool: _Tool) -> int:
    return len(tool.name.encode()) + len(tool.description.encode()) + len(dump(tool.parameters))


def _spec(tool: _Tool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description[:LONGEST_DESCRIPTION],
        input_schema=tool.parameters,
        control=tool.sub_type == "control",
    )


def _confirmation(provided: Sequence[str]) -> str:
    """Return the text that confirms a registration; it names the tools that count as tools of the server."""
    if not provided:
        return _DONE
    names = ", ".join(provided[:_NAMED]) + (" …" if len(provided) > _NAMED else "")
    return f'{_DONE} Not the device\'s, since "main_type" is "local": {names}.'


def _explain(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # If a value is not an object, the library's message names the expected class, which means nothing to the sender.
    text = "must be an object" if fault["type"] == "model_type" else fault["msg"]
    return ": ".join((".".join(("params", *map(str, fault["loc"]))), text))


DIALECT = RegistrarDialect()
