"""A client of the gateway: one session over as many connections as it needs."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import websockets
from websockets.exceptions import ConnectionClosed, WebSocketException

from fleet.workbench.cluster.check.history import History, Turn
from fleet.workbench.cluster.check.models import CALLED

_ANSWER_SECONDS = 30.0
_OPEN_SECONDS = 10.0
_MOST_ATTEMPTS = 5
_PARAMETERS = {
    "type": "object",
    "properties": {"level": {"type": "integer"}, "seconds": {"type": "integer"}},
    "required": ["level"],
}
_TOOL = {"name": CALLED.replace(".", "_"), "description": "Switches an output.", "parameters": _PARAMETERS}

Message = dict[str, Any]


class Client:
    """Asks through a gateway; when the gateway goes away, it connects again and resumes its session.

    Args:
        name: Its own.
        url: Of the gateway.
        marks: What only this client says.
        history: Takes the turns.
        chance: Its dice.
    """

    def __init__(self, name: str, url: str, marks: Sequence[int], history: History, chance: random.Random) -> None:
        self.name = name
        self._url, self._history, self._chance = url, history, chance
        self._marks: Iterator[int] = cycle(marks)
        self._clock = asyncio.get_running_loop().time
        self._socket: websockets.ClientConnection | None = None
        self._session = ""
        history.people.append(name)

    async def talk(self, over: Callable[[], bool]) -> None:
        """Ask one question after the other until the restarts are over, then one more."""
        try:
            while not over():
                await self.ask()
                await asyncio.sleep(self._chance.uniform(0.1, 1.0))
            await self.ask()
        finally:
            if self._socket is not None:
                await self._socket.close()

    async def ask(self) -> None:
        """Ask one question and wait for the answer."""
        turn = self._history.begin(self.name, "client", next(self._marks), self._clock())
        for _ in range(_MOST_ATTEMPTS):
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    if await self._try(turn):
                        break
            except (OSError, TimeoutError, WebSocketException) as error:
                self._socket = None
                turn.notes.append(f"no connection: {error or type(error).__name__}")
        turn.ended = self._clock()
        turn.outcome = "answered" if turn.answer else "lost"

    async def _try(self, turn: Turn) -> bool:
        """Ask once; return whether the question is settled."""
        taken = False
        try:
            socket = self._socket or await self._connect()
            turn.asked = self._clock()
            await socket.send(json.dumps({"type": "text_input", "text": f"scene {turn.mark}: please act"}))
            while True:
                message = await _hear(socket)
                taken = taken or message.get("status") != "idle"
                if await self._take(turn, socket, message):
                    return True
        except ConnectionClosed as closed:
            self._socket = None
            if taken:
                turn.notes.append(f"cut off in the midst of the turn: {closed}")
                return True
            # The gateway left before it had begun: nothing has happened yet.
            turn.again += 1
            return False

    async def _take(self, turn: Turn, socket: websockets.ClientConnection, message: Message) -> bool:
        """Do what a message of the turn asks for; return whether it was the last."""
        match message["type"]:
            case "tool_callback":
                turn.calls += 1
                call = {"type": "tool_result", "call_id": message["call_id"], "success": True, "result": True}
                await socket.send(json.dumps(call))
            case "llm_response":
                turn.heard = turn.heard or self._clock()
                turn.answer += str(message["content"])
                return bool(message["is_final"])
            case "error":
                turn.notes.append(f"{message['code']}: {message.get('details')}")
                return True
        return False

    async def _connect(self) -> websockets.ClientConnection:
        """Connect, resume the session if there is one, and announce what this client can do."""
        socket = await websockets.connect(self._url, compression=None, open_timeout=_OPEN_SECONDS, proxy=None)
        given = (await _hear(socket))["data"]["session_id"]
        if self._session:
            await socket.send(json.dumps({"type": "start_session", "session_id": self._session}))
            given = (await _hear(socket)).get("data", {}).get("session_id")
            if given != self._session:
                self._history.blame("session not resumed", f"{self.name} asked for {self._session}, got {given}")
        self._session = str(given)
        await socket.send(json.dumps({"type": "configure", "enable_context": True}))
        await socket.send(json.dumps({"type": "register_tools", "tools": [_TOOL]}))
        await _hear(socket)
        self._socket = socket
        return socket


async def _hear(socket: websockets.ClientConnection) -> Message:
    message: Message = json.loads(await socket.recv())
    return message
