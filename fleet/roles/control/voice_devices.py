"""The devices that browsers are while they talk to an agent."""

import hmac
import logging
from collections.abc import Collection
from typing import Final, Literal

from fleet.adapters.redis.access.admissions import Admission, Admissions
from fleet.adapters.redis.access.decisions import Asker, Decisions
from fleet.adapters.redis.access.talking_operators import TalkingOperators
from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.token_rows import FIRST_TENANT
from fleet.ground.errors import Unavailable
from fleet.roles.control.access import Principal

log = logging.getLogger(__name__)

_LOCAL: Final = b"\x02"
"""The first byte of a MAC that no maker has."""


class VoiceDevices:
    """Knows the own device of each token and account.

    Its MAC and its Client-Id derive from a key, so a stranger can neither own the MAC in advance nor be its owner.

    Args:
        store: Redis, with admissions.
        key: All processes of control have the same one.
    """

    def __init__(self, store: Store, key: bytes) -> None:
        self._key = key
        self._admissions, self._decisions, self._operators = (
            Admissions(store),
            Decisions(store),
            TalkingOperators(store),
        )

    def mac_of(self, who: Principal) -> str:
        """Return the MAC of a principal's own device, the same for each of its requests."""
        return self._mac(_subject(who))

    async def own(self, mac: str) -> Admission:
        """Make control the owner of such a device, if another client is, and return its admission."""
        client = self._derived(f"voice client {mac}").hex()[:32]
        known = await self._admissions.read(mac)
        if not known.bound or known.client != client:
            await self._decisions.bind(Asker(mac, client), until=0)
            known = await self._admissions.read(mac)
        return known

    async def end(self, kind: Literal["token", "account"], number: int) -> None:
        """End the conversations of a token or an account, and make its tickets invalid.

        While Redis is away they stay, but what ended in SQL has ended.
        """
        mac = self._mac(f"{kind} {number}")
        try:
            await self._end(mac)
        except Unavailable as error:
            log.warning("conversations of a browser not ended", extra={"device": mac, "reason": str(error)})

    async def note(self, who: Principal) -> None:
        """Remember that somebody talks whose token only the operators' file knows.

        Raises:
            Unavailable: Redis does not answer.
        """
        if who.digest:
            await self._operators.add(who.digest, who.name)

    async def end_removed(self, digests: Collection[str]) -> None:
        """End the conversations of operators who have none of some tokens any more.

        Raises:
            Unavailable: Redis does not answer.
        """
        for digest, name in await self._operators.read():
            if digest not in digests:
                await self._end(self._mac(_operator(name)))
                await self._operators.remove(digest, name)
                log.info("ended the conversations of a removed operator", extra={"operator": name})

    async def _end(self, mac: str) -> None:
        if (await self._admissions.read(mac)).bound:
            await self._decisions.renew(mac)

    def _mac(self, subject: str) -> str:
        return ":".join(f"{byte:02x}" for byte in _LOCAL + self._derived(f"voice device {subject}")[:5])

    def _derived(self, text: str) -> bytes:
        return hmac.new(self._key, text.encode(), "sha256").digest()


def _subject(who: Principal) -> str:
    """Return the owner of a device: by number, because a name may be given again."""
    if who.token:
        return f"token {who.token}"
    return f"account {who.sign_in.account}" if who.sign_in else _operator(who.name)


def _operator(name: str) -> str:
    return f"{FIRST_TENANT} operator:{name}"
