"""The device's tool server: JSON-RPC requests in, texts out, no IO (contract 6).

Error texts go into the answer unescaped, as firmware's do: a server has to survive that. From 2.5 on errors have a code
(main/mcp_server.cc at 77500b8). py-xiaozhi's answers are sound JSON, but differ in other ways (contract 8).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from fleet.workbench.sim.messages.message import JsonObject, item, member, number, text
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.audit import Finding
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.tool import Argument, Arguments, Outcome, Parameter, Restart, Tool, ToolError

LARGEST_PAGE = 8000
_RESERVE, _PY_XIAOZHI_RESERVE = 30, 100
_NO_METHOD, _BAD_PARAMS, _INTERNAL_ERROR = -32601, -32602, -32603
_INT32 = 2**31


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call whose arguments are in order; it is to run on the main loop."""

    id: int | str
    tool: Tool
    arguments: Arguments


@dataclass(slots=True)
class McpServer:
    """Answers requests.

    Args:
        profile: Names the board and its firmware.
        tools: In the order of the list.
        board: Takes the camera's upload address.
    """

    profile: Profile
    tools: Sequence[Tool]
    board: Board
    seen: set[int] = field(default_factory=set)

    def receive(self, request: JsonObject) -> str | PendingCall | None:
        """Return an answer's text, a call to run, or None for what firmware leaves unanswered."""
        method = text(request, "method")
        if item(request, "jsonrpc") != "2.0" or method is None or method.startswith("notifications"):
            return None
        id_ = self._id(item(request, "id"))
        if id_ is None or ("params" in request and not isinstance(request["params"], dict)):
            return None
        params = item(request, "params")
        match method:
            case "initialize":
                return self._initialize(id_, member(request, "params"))
            case "tools/list":
                return self._list(id_, member(request, "params"))
            case "tools/call":
                return self._call(id_, params if isinstance(params, dict) else None)
            case _:
                return self.fail(id_, f"Method not implemented: {method}", _NO_METHOD)

    async def run(self, call: PendingCall) -> tuple[Outcome, str]:
        """Run a call on the board; return its outcome and the text of the answer."""
        try:
            outcome = await call.tool.run(self.board, call.arguments)
        except ToolError as error:
            return None, self.fail_call(call.id, str(error))
        return outcome, answer(call.id, True if isinstance(outcome, Restart) else outcome)

    def fail(self, id_: int | str, message: str, code: int = _INTERNAL_ERROR) -> str:
        """Return the answer to a request that was refused; before 2.5 firmware leaves the code out."""
        if self.profile.is_py_xiaozhi:
            return _compact({"jsonrpc": "2.0", "id": id_, "error": {"code": _INTERNAL_ERROR, "message": message}})
        return error(id_, message, code if self.profile.error_codes else None)

    def fail_call(self, id_: int | str, message: str) -> str:
        """Return the answer to a call whose tool failed."""
        return answer(id_, message, is_error=True) if self.profile.is_py_xiaozhi else self.fail(id_, message)

    def check(self, request: JsonObject) -> Iterator[Finding]:
        """Yield what firmware would leave unanswered or confuse."""
        method = text(request, "method")
        if item(request, "jsonrpc") != "2.0" or method is None:
            yield "mcp-request", "no JSON-RPC 2.0 request"
        if "params" in request and not isinstance(request["params"], dict):
            yield "mcp-request", f"{method}: params is no object"
        if method is None or method.startswith("notifications"):
            return
        id_ = item(request, "id")
        if not isinstance(id_, int) or isinstance(id_, bool) or not 0 < id_ < _INT32:
            yield "mcp-request", f"{method}: id {id_!r} is no positive int32"
        elif id_ in self.seen:
            yield "mcp-id-reuse", f"{method}: id {id_}"
        else:
            self.seen.add(id_)

    def _id(self, given: JsonValue) -> int | str | None:
        """Return an id as the answer bears it, or None for one that is not answered."""
        if self.profile.is_py_xiaozhi and isinstance(given, str):
            return given
        value = number(given)
        return None if value is None else max(-_INT32, min(_INT32 - 1, int(value)))

    def _initialize(self, id_: int | str, params: JsonObject) -> str:
        vision = member(member(params, "capabilities"), "vision")
        url = text(vision, "url")
        if url is not None:
            self.board.vision_url = url
            self.board.vision_token = text(vision, "token") or ""
        return _result(
            id_,
            {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": self.profile.board, "version": self.profile.version},
            },
        )

    def _list(self, id_: int | str, params: JsonObject) -> str:
        cursor = text(params, "cursor") or ""
        with_user_tools = item(params, "withUserTools") is True
        names = [tool.name for tool in self.tools]
        start = names.index(cursor) if cursor in names else 0 if not cursor else len(names)
        page, following = '{"tools":[', ""
        reserve = _PY_XIAOZHI_RESERVE if self.profile.is_py_xiaozhi else _RESERVE
        for tool in self.tools[start:]:
            if tool.user_only and not with_user_tools:
                continue
            entry = _compact(tool.describe(always_required=self.profile.is_py_xiaozhi))
            if len(page.encode()) + len(entry.encode()) + 1 + reserve > LARGEST_PAGE:
                following = tool.name
                break
            page += entry + ","
        if page.endswith("[") and self.profile.is_py_xiaozhi and not following:
            return _result(id_, {"tools": []})
        if page.endswith("["):
            return self.fail(id_, f"Failed to add tool {following} because of payload size limit")
        more = f',"nextCursor":"{following}"' if following else ""
        return f'{{"jsonrpc":"2.0","id":{_compact(id_)},"result":{page[:-1]}]{more}}}}}'

    def _call(self, id_: int | str, params: JsonObject | None) -> str | PendingCall:
        newer = self.profile.error_codes
        if params is None:
            return self.fail(id_, "Missing params", _BAD_PARAMS)
        name = text(params, "name")
        if name is None:
            return self.fail(id_, "Missing tool name" if newer else "Missing name", _BAD_PARAMS)
        given = item(params, "arguments") if any(key.lower() == "arguments" for key in params) else {}
        if not isinstance(given, dict):
            return self.fail(id_, "Invalid arguments" + (": expected object" if newer else ""), _BAD_PARAMS)
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            return self.fail(id_, f"Unknown tool: {name}", _BAD_PARAMS)
        read = _argument_of_25 if newer else _argument
        try:
            return PendingCall(id_, tool, {one.name: read(one, given) for one in tool.parameters})
        except ValueError as fault:
            return self.fail(id_, str(fault), _BAD_PARAMS)


def answer(id_: int | str, outcome: Outcome, *, is_error: bool = False) -> str:
    """Return the answer to a call that was carried out."""
    if isinstance(outcome, bool):
        said = "true" if outcome else "false"
    elif isinstance(outcome, int | str):
        said = str(outcome)
    else:
        said = _compact(outcome)
    return _result(id_, {"content": [{"type": "text", "text": said}], "isError": is_error})


def error(id_: int | str, message: str, code: int | None = None) -> str:
    """Return firmware's answer to a request that failed, the message as it is."""
    coded = "" if code is None else f'"code":{code},'
    return f'{{"jsonrpc":"2.0","id":{id_},"error":{{{coded}"message":"{message}"}}}}'


def _argument_of_25(wanted: Parameter, given: JsonObject) -> Argument:
    """Return an argument's value as firmware 2.5 reads it: what is there must have the right type.

    Raises:
        ValueError: It is missing, has another type, or is out of range; the text is firmware's.
    """
    if any(key.lower() == wanted.name.lower() for key in given):
        if _typed(wanted, item(given, wanted.name)) is None:
            raise ValueError(f"Invalid type for argument: {wanted.name}")
    elif wanted.default is None:
        raise ValueError(f"Missing required argument: {wanted.name}")
    return _argument(wanted, given)


def _argument(wanted: Parameter, given: JsonObject) -> Argument:
    """Return an argument's value: that of the call if its type fits, else the default.

    Raises:
        ValueError: It is missing or out of range; the text is firmware's.
    """
    value = _typed(wanted, item(given, wanted.name))
    if value is None:
        if wanted.default is None:
            raise ValueError(f"Missing valid argument: {wanted.name}")
        return wanted.default
    if isinstance(value, int) and wanted.minimum is not None and value < wanted.minimum:
        raise ValueError(f"Value is below minimum allowed: {wanted.minimum}")
    if isinstance(value, int) and wanted.maximum is not None and value > wanted.maximum:
        raise ValueError(f"Value exceeds maximum allowed: {wanted.maximum}")
    return value


def _typed(wanted: Parameter, value: JsonValue) -> Argument | None:
    if wanted.type == "integer":
        found = number(value)
        return None if found is None else int(found)
    if wanted.type == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else None


def _result(id_: int | str, result: JsonValue) -> str:
    return f'{{"jsonrpc":"2.0","id":{_compact(id_)},"result":{_compact(result)}}}'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
