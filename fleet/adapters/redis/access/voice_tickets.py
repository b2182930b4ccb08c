"""Tickets for a voice connection: who has one may be a certain device, once, within a minute."""

import hashlib
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, cast

from fleet.adapters.redis.client.store import Store
from fleet.wire.topics import canonical_mac

TICKET_SECONDS: Final = 60
LONGEST_TICKET: Final = 64


@dataclass(frozen=True, slots=True)
class VoiceTicket:
    """The device that the holder is, and the Client-Id under which it owns its MAC.

    It is valid until the device needs a password of a later generation. `until`, in ms since 1970, is the end of the
    token or sign-in that asked, and of the conversation; 0 if there is none.
    """

    device: str
    client: str
    generation: int
    until: int = 0


class VoiceTickets:
    """Issues tickets, and takes each one once. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def issue(self, ticket: VoiceTicket) -> str:
        """Return the secret of a new ticket; Redis has only its hash."""
        secret = secrets.token_urlsafe(32)
        text = f"{ticket.device} {ticket.client} {ticket.generation} {ticket.until}"
        kept = self._store.client.set(_key(secret), text, ex=TICKET_SECONDS)
        await self._store.ask(cast("Awaitable[bool | None]", kept))
        return secret

    async def take(self, secret: str) -> VoiceTicket | None:
        """Return the ticket with a secret, which is invalid from now on; None if there is none."""
        if not secret or len(secret) > LONGEST_TICKET:
            return None
        found = await self._store.ask(cast("Awaitable[str | None]", self._store.client.getdel(_key(secret))))
        device, client, generation, until = [*(found or "").split(" "), "", "", ""][:4]
        if canonical_mac(device) != device or not generation.isdecimal():
            return None
        # A process of an earlier version wrote no end.
        return VoiceTicket(device, client, int(generation), int(until or 0))


def _key(secret: str) -> str:
    return f"voice:{hashlib.sha256(secret.encode(errors='replace')).hexdigest()}"
