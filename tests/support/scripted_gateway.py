"""A gateway for tests of its web page: the messages of the LLM Gateway WebSocket API, with answers by rote.

It runs in threads of its own, so that a test may drive a browser without an event loop.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from fleet.roles.gateway.port.page import answer

LIMIT = 240.0
TOOL_NAME = re.compile(r"(?=.{1,64}$)[A-Za-z_]\w*(\.\w+)*", re.ASCII)
Message = dict[str, Any]


class ScriptedGateway:
    """Records what the page sends, and plays the answers that the texts ask for.

    What it knows: "battery" and "volume" call the client's tools, "both" two of them at once, "weather" a server tool,
    "call NAME JSON" any tool, "expire" one whose time is over at once, "fail" is an error of the model, "hang" gets no
    answer; any other text is repeated.
    """

    def __init__(self) -> None:
        self.url = ""
        self.refuses = False
        """Whether connections are closed at once with 1013."""
        self._received: list[Message] = []
        self._news = threading.Condition()
        self._connections: list[ServerConnection] = []

    @classmethod
    @contextmanager
    def running(cls) -> Iterator["ScriptedGateway"]:
        self = cls()
        with serve(self._talk, "127.0.0.1", 0, process_request=_serve_page) as server:
            self.url = f"http://127.0.0.1:{_port(server)}"
            thread = threading.Thread(target=server.serve_forever, name="scripted-gateway", daemon=True)
            thread.start()
            yield self
            self.drop(1001)
            server.shutdown()
            thread.join(LIMIT)

    @property
    def websocket(self) -> str:
        return self.url.replace("http", "ws", 1)

    def drop(self, code: int) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close(code)
        self._connections.clear()

    def expect(self, kind: str, number: int = 1) -> Message:
        """Return the so-manieth message of a type, counted from the first one."""
        with self._news:
            found = self._news.wait_for(lambda: self._all(kind)[number - 1 : number], LIMIT)
        assert found, f"no {kind} number {number}; came: {self._received}"
        return found[0]

    def _all(self, kind: str) -> list[Message]:
        return [message for message in self._received if message.get("type") == kind]

    def _talk(self, connection: ServerConnection) -> None:
        if self.refuses:
            connection.close(1013)
            return
        self._connections.append(connection)
        with suppress(ConnectionClosed):
            visit = Visit(connection)
            visit.send("status", status="connected", data={"session_id": "session-1"})
            for text in connection:
                with self._news:
                    self._received.append(visit.read(text))
                    self._news.notify_all()
                visit.take(self._received[-1])


class Visit:
    """One connection: its tools, its settings, and the turn that waits for tool results."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._tools: set[str] = set()
        self._streams = False
        self._results: dict[str, Message | None] = {}

    def send(self, kind: str, **members: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._connection.send(json.dumps({"type": kind, **members, "timestamp": now}, ensure_ascii=False))

    def fail(self, code: str, message: str, details: str = "") -> None:
        self.send("error", code=code, message=message, details=details)

    def read(self, text: str | bytes) -> Message:
        try:
            message = json.loads(text)
        except ValueError:
            return {"type": "", "text": text}
        return message if isinstance(message, dict) else {}

    def take(self, message: Message) -> None:
        match message.get("type"):
            case "ping":
                self.send("pong")
            case "configure":
                self._streams = message.get("stream") is True
            case "start_session":
                self._start(message.get("session_id", "session-2"))
            case "end_session":
                self.send("status", status="idle", data={})
            case "register_tools":
                self._register(message["tools"])
            case "text_input":
                self._answer(message["text"])
            case "tool_result":
                self._result(message)
            case "":
                self.fail("INVALID_MESSAGE", "Not JSON")
            case kind:
                self.fail("UNKNOWN_MESSAGE_TYPE", f"Unknown message type: {kind}")

    def _start(self, session: str) -> None:
        if session.startswith("session-"):
            self.send("status", status="connected", data={"session_id": session})
        else:
            self.fail("SESSION_ERROR", "Session not found", session)

    def _register(self, tools: list[Message]) -> None:
        told = []
        for tool in tools:
            name = str(tool["name"])
            if TOOL_NAME.fullmatch(name):
                told.append({"name": name, "status": "registered"})
                self._tools.add(name)
            else:
                told.append({"name": name, "status": "failed", "error": "Invalid tool name"})
        count = sum(one["status"] == "registered" for one in told)
        self.send("tools_registered", count=count, tools=told)

    def _answer(self, text: str) -> None:
        if not text:
            self.fail("INVALID_MESSAGE", "Text cannot be empty")
            return
        self.send("status", status="processing", data={"message": "…"})
        match text.split()[0]:
            case "hang":
                pass
            case "fail":
                self.fail("LLM_ERROR", "Failed to process request", "Connection timeout")
            case "weather":
                arguments, result = {"city": "Kyoto"}, {"temperature": 22, "condition": "Sunny"}
                self._tool_call("get_weather", arguments, result)
                self._respond("It is sunny in Kyoto. 22 degrees.")
            case "battery":
                self._call(("get_battery", {}))
            case "volume":
                self._call(("set_volume", {"volume": 30}))
            case "both":
                self._call(("get_battery", {}), ("set_volume", {"volume": 70}))
            case "expire":
                self._call(("get_battery", {}))
                self._results = {}
                self.fail("TOOL_RESULT_TIMEOUT", "Tool execution timeout")
            case "call":
                _, name, given = text.split(maxsplit=2)
                self._call((name, json.loads(given)))
            case _:
                self._respond(f"You said: {text}")

    def _tool_call(self, name: str, arguments: Message, result: Message) -> None:
        self.send("tool_call", tool_name=name, arguments=arguments, result=result, success=True, duration_ms=125.5)

    def _call(self, *calls: tuple[str, Message]) -> None:
        self.send("status", status="waiting_for_tools", data={"pending_tools": len(calls)})
        for number, (name, arguments) in enumerate(calls, 1):
            self._results[f"call-{number}"] = None
            self.send("tool_callback", call_id=f"call-{number}", tool_name=name, arguments=arguments)

    def _result(self, message: Message) -> None:
        if message["call_id"] not in self._results:
            self.fail("INVALID_MESSAGE", "Unknown or expired call_id", message["call_id"])
            return
        self._results[message["call_id"]] = message
        answers = [result for result in self._results.values() if result]
        if len(answers) < len(self._results):
            return
        self._results = {}
        told = [json.dumps(one.get("result") if one["success"] else one["error"]) for one in answers]
        self._respond(f"The tools say: {'; '.join(told)}")

    def _respond(self, content: str) -> None:
        if self._streams:
            for chunk in re.findall(r"\S+\s*", content):
                self.send("llm_response", content=chunk, tool_calls=[], is_final=False)
        self.send("llm_response", content=content, tool_calls=[], is_final=True)
        self.send("status", status="idle", data={})


def _port(server: Server) -> int:
    port: int = server.socket.getsockname()[1]
    return port


def _serve_page(connection: ServerConnection, request: Request) -> Response | None:
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return None
    page = answer(request.path)
    if page is None:
        return connection.respond(HTTPStatus.NOT_FOUND, "no such page\n")
    headers = Headers([("Content-Type", page.content_type), ("Content-Length", str(len(page.body))), *page.headers])
    headers["Connection"] = "close"
    return Response(page.status, HTTPStatus(page.status).phrase, headers, page.body)
