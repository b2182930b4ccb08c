"""Admits voice clients: who has a ticket is the device that the ticket names."""

import asyncio
import functools
import logging
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Final, Protocol

from websockets.frames import CloseCode
from websockets.http11 import Request

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.voice_tickets import VoiceTicket, VoiceTickets
from fleet.adapters.redis.client.store import Store
from fleet.core.admission import Policy
from fleet.ground.errors import Unavailable
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.voice.voice_client import TakenOver, VoiceClient, VoiceEnded
from fleet.wire.dialects import XIAOZHI
from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.voice_websocket import NotHello

log = logging.getLogger(__name__)

TICKET_PREFIX: Final = "fleet.ticket."
"""A page cannot set headers, so it offers its ticket as a subprotocol."""
HELLO_SECONDS: Final = 10.0
MOST: Final = 100
"""Voice clients of a gateway; each has a connection to the broker and a UDP socket."""
BOARD: Final = "browser"


class DeviceLogins(Protocol):
    """Connects clients as devices."""

    keys: CredentialKeys

    def session(self, credentials: Credentials, reading: Reading) -> MqttSession:
        """Return an MQTT session of a device that is not connected yet."""

    def followed(self, client: Client, credentials: Credentials) -> AbstractContextManager[None]:
        """Close the client's connection when its credentials become invalid during the block."""


class VoiceDoor:
    """Serves voice clients.

    Args:
        store: Redis, with tickets and admissions.
        logins: Connects clients as devices.
        policy: Who is admitted.
    """

    def __init__(self, store: Store, logins: DeviceLogins, policy: Policy) -> None:
        self._tickets, self._admissions = VoiceTickets(store), Admissions(store)
        self._logins, self._policy = logins, policy
        self._clients: set[Client] = set()
        self._talking: dict[str, VoiceClient] = {}
        """The last client of each device."""

    @property
    def clients(self) -> int:
        """Number of voice clients."""
        return len(self._clients)

    async def take_ticket(self, request: Request) -> VoiceTicket | None:
        """Return the ticket that a request has; it is invalid from now on.

        Raises:
            Unavailable: Redis does not answer.
        """
        return await self._tickets.take(_ticket(request))

    async def serve(self, client: Client, ticket: VoiceTicket) -> None:
        """Serve a client until one of both sides ends the connection."""
        if len(self._clients) >= MOST:
            await client.socket.close(CloseCode.TRY_AGAIN_LATER, "too many voice clients")
            return
        self._clients.add(client)
        try:
            await self._serve(client, ticket)
        except NotHello as error:
            await client.socket.close(CloseCode.POLICY_VIOLATION, str(error))
        except (Unavailable, TimeoutError) as error:
            log.warning("voice client not served", extra={"device": ticket.device, "reason": str(error)})
            await client.socket.close(CloseCode.TRY_AGAIN_LATER, "the server cannot serve you now")
        finally:
            self._clients.discard(client)

    async def _serve(self, client: Client, ticket: VoiceTicket) -> None:
        async with asyncio.timeout(HELLO_SECONDS):
            first = await client.receive()
        if first is None:
            return
        credentials = await self._log_in(client, ticket)
        if credentials is None:
            await client.socket.close(CloseCode.POLICY_VIOLATION, "the device is not admitted")
            return
        log.info("voice client logged in as a device", extra={"device": ticket.device})
        open_session = functools.partial(self._logins.session, credentials)
        voice = VoiceClient(client, ticket.device, open_session)
        # The broker would only close its session, without a reason.
        if former := self._talking.get(ticket.device):
            former.end(TakenOver("another client talks as this device"))
        self._talking[ticket.device] = voice
        try:
            with self._logins.followed(client, credentials), _ending(voice, ticket.until):
                await voice.run(first)
        finally:
            if self._talking.get(ticket.device) is voice:
                del self._talking[ticket.device]

    async def _log_in(self, client: Client, ticket: VoiceTicket) -> Credentials | None:
        """Return the credentials of the device, as its bootstrap would; None if it is not admitted."""
        keys = self._logins.keys
        if ticket.device in keys.revoked or _seconds_left(ticket.until) <= 0:
            return None
        asker = BootstrapAsker(ticket.device, ticket.client, client.address, dialect=XIAOZHI)
        # Where an edge names no address of its own, the device takes the one at which it reached the server.
        local = client.socket.local_address
        host = str(local[0]) if isinstance(local, tuple) and local else ""
        fields = {"host": host, "kid": keys.ids[0], "board": BOARD}
        async with asyncio.timeout(HELLO_SECONDS):
            decision = await self._admissions.decide(self._policy, asker, fields)
        if decision.verdict != "admitted" or decision.generation > ticket.generation:
            return None
        return keys.issue_to_device(ticket.device, self._policy, decision.generation)


@contextmanager
def _ending(voice: VoiceClient, until: int) -> Iterator[None]:
    """End the conversation at a time, if that comes during the block."""
    ended = VoiceEnded("the token or sign-in has expired")
    loop, left = asyncio.get_running_loop(), _seconds_left(until)
    timer = loop.call_later(left, voice.end, ended) if left < math.inf else None
    try:
        yield
    finally:
        if timer:
            timer.cancel()


def _seconds_left(until: int) -> float:
    return until / 1000 - datetime.now(UTC).timestamp() if until else math.inf


def _ticket(request: Request) -> str:
    for value in request.headers.get_all("Sec-WebSocket-Protocol"):
        for word in value.split(","):
            if word.strip().startswith(TICKET_PREFIX):
                return word.strip().removeprefix(TICKET_PREFIX)
    return ""
