"""The questions of one connection, answered one after the other."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable

from fleet.ground.log import fields
from fleet.roles.gateway.client import ClientGone
from fleet.roles.gateway.client_session import shown
from fleet.roles.gateway.turns.consent import ClientConsent
from fleet.roles.gateway.turns.text_budget import TextBudget
from fleet.roles.gateway.turns.turn import Question

log = logging.getLogger(__name__)

MOST_WAITING = 8
"""Questions in the queue; a further one is refused."""

NO_MEMORY = "The texts that wait take too much memory; this one was not taken"


class GatewayTurns:
    """Answers questions in their order.

    Args:
        answer: Answers one question.
        texts: Counts the texts that are not answered yet.
    """

    def __init__(self, answer: Callable[[Question], Awaitable[None]], texts: TextBudget) -> None:
        self._answer = answer
        self._texts = texts
        self._waiting: asyncio.Queue[Question] = asyncio.Queue(MOST_WAITING)
        self.consent = ClientConsent()
        """The call that waits for the next text, if there is one."""
        self._running: tuple[Question, asyncio.Task[None]] | None = None

    @property
    def busy(self) -> bool:
        """Whether a question is not answered yet."""
        return self._running is not None or not self._waiting.empty()

    def add(self, question: Question) -> str:
        """Queue a question; return the reason if it is refused, else an empty text."""
        if self._waiting.full():
            return f"{MOST_WAITING} requests wait already; this one was not taken"
        if not self._texts.take(question.text):
            return NO_MEMORY
        self._waiting.put_nowait(question)
        return ""

    def drop(self) -> int:
        """Drop all questions, the running one too; return how many were not answered."""
        dropped = 0
        while not self._waiting.empty():
            self._texts.give_back(self._waiting.get_nowait().text)
            dropped += 1
        if self._running is not None:
            question, task = self._running
            dropped += not question.answered
            task.cancel()
        return dropped

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            await self._run_next()

    async def _run_next(self) -> None:
        # A function of its own, so that no variable keeps the last text while the next one is waited for.
        question = await self._waiting.get()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._serve(question), name="gateway turn")
            self._running = (question, task)
        self._running = None
        self._texts.give_back(question.text)

    async def _serve(self, question: Question) -> None:
        with fields(session=shown(question.session), turn=secrets.token_hex(4)):
            log.info("turn begins", extra={"pii": {"text": question.text}})
            try:
                await self._answer(question)
            except ClientGone as gone:
                log.info("client left", extra={"reason": str(gone)})
            log.info("turn ended")
