"""`/devices/{mac}/input`: operators send a text to a device's agent; the device speaks the answer, they read it."""

import asyncio
import json
import logging
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.exceptions import HTTPException

from fleet.adapters.files.operator_tokens import DEVICES_INPUT
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.conversations import Conversations
from fleet.adapters.redis.sessions.replies import Replies, Reply
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.errors import Unavailable
from fleet.roles.api.body import read_body
from fleet.roles.api.operators import Operators
from fleet.roles.api.throttle import Throttle
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.topics import canonical_mac

log = logging.getLogger(__name__)

LONGEST_TEXT = 4_000
"""Characters."""
LARGEST_BODY = 6 * LONGEST_TEXT + 1_000
"""Bytes; a character may be written as an escape of six."""
LONGEST_WAIT = 120.0
MOST_WAITING = 256
"""Requests that wait for an answer at a time; further ones get the turn's id at once."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.25


class Input(BaseModel):
    """What is entered. `language` is the text's ISO 639-1 code; `interrupt` ends a turn that is being answered."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    language: Annotated[str, StringConstraints(pattern="^[a-z]{2}$")] | None = None
    interrupt: bool = False


class DevicesRoute:
    """Takes text for devices.

    Args:
        operators: Check tokens.
        store: Redis.
        throttle: Limits texts for a device.
    """

    def __init__(self, operators: Operators, store: Store, throttle: Throttle) -> None:
        self._operators = operators
        self._throttle = throttle
        self._store = store
        self._devices = Devices(store)
        self._inboxes = Inboxes(store)
        self._replies = Replies(store)
        self._conversations = Conversations(store, seconds=0)
        self._waiting = 0
        self.router = APIRouter()
        self.router.add_api_route("/devices/{mac}/input", self.enter, methods=["POST"])
        self.router.add_api_route("/devices/{mac}/input/{turn}", self.look, methods=["GET"])

    async def enter(self, mac: str, request: Request) -> JSONResponse:
        """Begin a turn with a text: 202 with its id, or with `?wait=SECONDS` 200 with an answer that comes in time."""
        operator = self._operators.admit(request, DEVICES_INPUT)
        mac = _mac(mac)
        self._throttle.admit_input(mac)
        seconds = _wait(request)
        entered = _parse(await read_body(request, LARGEST_BODY + 1))
        turn = uuid4().hex
        try:
            await self._check(mac, entered)
            await self._replies.expect(mac, turn)
            event = UtteranceEvent(
                device=mac,
                session="",
                turn=turn,
                text=entered.text,
                language=entered.language or "",
                typed=True,
                polite=not entered.interrupt,
            )
            await self._inboxes.to_shard(self._store.keys.shard(mac), event)
            about = {"device": mac, "turn": turn, "operator": operator.name, "pii": {"text": entered.text}}
            log.info("text entered", extra=about)
            reply = await self._await(mac, turn, seconds)
        except Unavailable as error:
            raise HTTPException(503, "the store is away; try again later") from error
        if reply.state == "busy":
            raise _busy()
        return _answer(turn, reply)

    async def look(self, mac: str, turn: str, request: Request) -> JSONResponse:
        """Return the state of a turn: 202 while it runs, 200 when it is over."""
        self._operators.admit(request, DEVICES_INPUT)
        try:
            reply = await self._replies.read(_mac(mac), turn[:64])
        except Unavailable as error:
            raise HTTPException(503, "the store is away; try again later") from error
        if reply is None:
            raise HTTPException(404, "no such turn, or too long ago")
        return _answer(turn, reply)

    async def _check(self, mac: str, entered: Input) -> None:
        device = await self._devices.known(mac)
        if device is None:
            raise HTTPException(404, "the device is unknown")
        if not device.online:
            raise HTTPException(409, "the device is offline")
        if entered.interrupt:
            return
        journal = await self._conversations.journal(mac)
        if journal is not None and journal.state == "running":
            raise _busy()

    async def _await(self, mac: str, turn: str, seconds: float) -> Reply:
        """Return the state of a turn, when it is over or when the time is."""
        clock, pause, reply = asyncio.get_running_loop().time, _FIRST_PAUSE, Reply("accepted")
        until = clock() + seconds
        if self._waiting >= MOST_WAITING:
            return reply
        self._waiting += 1
        try:
            while not reply.over and clock() < until:
                await asyncio.sleep(min(pause, max(until - clock(), 0)))
                pause = min(pause * 1.5, _LONGEST_PAUSE)
                reply = await self._replies.read(mac, turn) or reply
        finally:
            self._waiting -= 1
        return reply


def _mac(text: str) -> str:
    mac = canonical_mac(text[:64])
    if mac is None:
        raise HTTPException(400, "the path must name a MAC")
    return mac


def _wait(request: Request) -> float:
    text = request.query_params.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise HTTPException(400, f"wait must be a number of seconds up to {LONGEST_WAIT:.0f}")
    return seconds


def _parse(body: bytes) -> Input:
    if len(body) > LARGEST_BODY:
        raise HTTPException(413, f"the text is longer than {LONGEST_TEXT} characters", {"Connection": "close"})
    try:
        entered = Input.model_validate(json.loads(body.decode()))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the body"
        raise HTTPException(400, f"{place}: {fault['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, 'the body must be JSON: {"text": …}') from error
    if len(entered.text) > LONGEST_TEXT:
        raise HTTPException(413, f"the text is longer than {LONGEST_TEXT} characters")
    return entered.model_copy(update={"text": entered.text.encode("utf-8", "replace").decode()})


def _busy() -> HTTPException:
    return HTTPException(409, "the device is busy with a turn; try again, or interrupt it", {"Retry-After": "2"})


def _answer(turn: str, reply: Reply) -> JSONResponse:
    if not reply.over:
        return JSONResponse({"turn": turn, "state": reply.state}, 202)
    return JSONResponse({"turn": turn, "state": reply.state, "text": reply.text})
