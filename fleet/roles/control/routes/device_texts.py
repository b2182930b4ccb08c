"""`/v1/devices/{mac}/turns` and `:say`: texts that a device's agent answers, and texts that a device speaks."""

from uuid import uuid4

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.conversations import Conversations
from fleet.adapters.redis.sessions.replies import Replies, Reply
from fleet.adapters.redis.sessions.sessions import Sessions
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.permissions import CONVERSATIONS_READ, DEVICES_COMMAND, DEVICES_DANGEROUS
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.idempotency import keep
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.spoken_texts import check_spoken
from fleet.roles.control.waiting import Waiting, WaitSeconds
from fleet.wire.control.calls import SayRequest, TurnRequest, TurnState
from fleet.wire.edge_messages import SayEvent, UtteranceEvent

_IDLE = (
    "the device is in no conversation; an announcement (POST /v1/announcements) reaches it now: firmware from 2.5 on "
    "plays it, older firmware shows it"
)
_FULL = "too many texts wait in this part of the fleet; try again later"


class DeviceTextRoutes:
    """Texts. What was said in a turn is a conversation, so its text needs the scope to read those."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, store = services, services.store
        self._devices, self._inboxes, self._replies = Devices(store), Inboxes(store), Replies(store)
        self._sessions, self._conversations = Sessions(store, self._inboxes), Conversations(store, seconds=0)
        self._shard_of, self._waiting = store.keys.shard, Waiting()
        self._own = OwnDevices(services)
        routes.add("POST /devices/{mac}/turns", self.enter, DEVICES_COMMAND, model=TurnState)
        routes.add("GET /devices/{mac}/turns/{turn}", self.read, DEVICES_COMMAND, model=TurnState)
        routes.add("POST /devices/{mac}:say", self.say, DEVICES_COMMAND, model=TurnState)

    async def enter(self, request: Request, who: Who, mac: str, body: TurnRequest, wait: WaitSeconds = 0.0) -> Response:
        """Let the device's agent answer a text: in a session the device speaks the answer, an idle one shows it.

        The agent calls dangerous tools only if the token has the scope devices:dangerous. A repeated request with its
        Idempotency-Key gets 202 with the id, to ask for the turn.
        """
        device = await self._check(who, mac, interrupt=body.interrupt)
        turn = uuid4().hex
        event = UtteranceEvent(
            device=device,
            session="",
            turn=turn,
            text=_clean(body.text),
            language=body.language or "",
            typed=True,
            polite=not body.interrupt,
            no_dangerous_tools=DEVICES_DANGEROUS not in who.scopes,
        )
        return await self._send(request, who, event, "device.turn", wait)

    async def say(self, request: Request, who: Who, mac: str, body: SayRequest, wait: WaitSeconds = 0.0) -> Response:
        """Let the device speak a text in its session, in its order of turns; 409 `idle` if it has none."""
        device = await self._check(who, mac, interrupt=body.interrupt)
        session = await self._sessions.read(device)
        if session is None or not session.edge:
            raise Problem(409, "idle", _IDLE)
        check_spoken(body.text)
        event = SayEvent(
            device=device,
            session=session.id,
            turn=uuid4().hex,
            text=_clean(body.text),
            language=body.language or "",
            polite=not body.interrupt,
        )
        return await self._send(request, who, event, "device.say", wait)

    async def read(self, who: Who, mac: str, turn: str) -> Response:
        """Return a turn that began as text: 200 if it is over, else 202. It is known for ten minutes."""
        device = await self._own.known(who, mac)
        return _answer(who, device, turn[:64], await self._reply(device, turn[:64]))

    async def _send(
        self, request: Request, who: Principal, event: UtteranceEvent | SayEvent, action: str, wait: float
    ) -> Response:
        device, turn = event.device, event.turn
        async with self._services.changes.begin(request) as change:
            # The words themselves are a conversation, and no part of the audit log.
            await change.audit(action, f"device/{device}", after={"turn": turn, "characters": len(event.text)})
            await change.pin()
        await self._replies.expect(device, turn)
        if not await self._inboxes.offer_to_shard(self._shard_of(device), event):
            raise Problem(429, "too-many-texts", _FULL, headers={"Retry-After": "5"})
        reply = await self._waiting.until(lambda: self._reply(device, turn), lambda one: one.over, wait)
        if reply.state == "busy":
            raise _busy()
        # A repeated request gets where the turn is, not its words: in a kept answer they would outlive a redaction.
        await keep(self._services.database, request, _answer(who, device, turn, Reply("accepted")))
        return _answer(who, device, turn, reply)

    async def _check(self, who: Principal, mac: str, *, interrupt: bool) -> str:
        device = await self._own.known(who, mac)
        if not (await self._devices.read(device)).online:
            raise Problem(409, "offline", "the device is offline")
        journal = None if interrupt else await self._conversations.journal(device)
        if journal is not None and journal.state == "running":
            raise _busy()
        return device

    async def _reply(self, device: str, turn: str) -> Reply:
        reply = await self._replies.read(device, turn)
        if reply is None:
            raise not_found("turn")
        return reply


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _busy() -> Problem:
    return Problem(
        409, "busy", "the device is busy with a turn; try again, or interrupt it", headers={"Retry-After": "2"}
    )


def _answer(who: Principal, device: str, turn: str, reply: Reply) -> Response:
    text = reply.text if CONVERSATIONS_READ in who.scopes else ""
    state = TurnState(id=turn, device=device, state=reply.state, text=text)
    headers = {} if reply.over else {"Location": f"/v1/devices/{device}/turns/{turn}"}
    return JSONResponse(state.model_dump(mode="json"), 200 if reply.over else 202, headers)
