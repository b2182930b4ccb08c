"""What the mail of edges leads to."""

import asyncio
import logging
from collections.abc import Callable
from typing import assert_never

from fleet.log import fields
from fleet.store.mailbox import Letter, Mailboxes
from fleet.tasks import Backoff, keep_running
from fleet.wire.mail import SessionSilent, ShardMail, SpeechDone, SpeechInterrupted, UtteranceHeard
from fleet.worker.hello import Receptionist
from fleet.worker.shard import Shard
from fleet.worker.turns import Turns

log = logging.getLogger(__name__)

_IDLE_PAUSE = 0.2


class Letters:
    """Reads the mailboxes of the owned shards."""

    def __init__(
        self, mailboxes: Mailboxes, owned: Callable[[], dict[int, Shard]], receptionist: Receptionist, turns: Turns
    ) -> None:
        self._mailboxes = mailboxes
        self._owned = owned
        self._receptionist = receptionist
        self._turns = turns
        self._read: dict[int, tuple[str, str]] = {}
        """For each shard the fence under which it was read, and the last letter."""

    async def run(self) -> None:
        backoff = Backoff(limit=2.0)
        await keep_running("mailboxes", lambda: self._follow(backoff), backoff)

    async def _follow(self, backoff: Backoff) -> None:
        while True:
            shards = self._owned()
            if not shards:
                await asyncio.sleep(_IDLE_PAUSE)
                continue
            letters = await self._mailboxes.read_shards({n: self._after(shard) for n, shard in shards.items()})
            backoff.reset()
            for letter in letters:
                shard = shards[letter.shard]
                self._read[letter.shard] = (shard.owner.fence, letter.id)
                shard.spawn(f"letter {letter.id}", self._deliver(shard, letter))

    def _after(self, shard: Shard) -> str:
        """Return the last letter read under the present lease: a new owner begins with what was left to it."""
        fence, last = self._read.get(shard.number, ("", "0"))
        return last if fence == shard.owner.fence else "0"

    async def _deliver(self, shard: Shard, letter: Letter) -> None:
        mail = letter.mail
        if mail is None:
            await self._mailboxes.discard([letter])
            return

        async def work() -> None:
            await self._handle(shard, mail)
            # Only now: what failed is left for the shard's next owner.
            await self._mailboxes.discard([letter])

        with fields(device=mail.device, session=mail.session):
            await shard.lanes.run(mail.device, work)

    async def _handle(self, shard: Shard, mail: ShardMail) -> None:
        match mail:
            case UtteranceHeard():
                await self._turns.begin(shard, mail)
            case SpeechInterrupted():
                await self._turns.interrupt(shard, mail)
            case SpeechDone():
                log.debug("speech done", extra={"turn": mail.turn})
            case SessionSilent():
                if await self._receptionist.farewell(shard, mail.device, mail.session, mail.reason):
                    self._turns.cancel(mail.device)
            case _:
                assert_never(mail)
