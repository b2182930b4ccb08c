"""What is asked one by one in one iteration of the event loop, asked together."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q")
A = TypeVar("A")


class Together(Generic[K, Q, A]):
    """Collects questions of one iteration by key, and asks those of each key at once: a round trip costs the most.

    The caller bounds how many there are. Who is cancelled gets no answer; the others still do.

    Args:
        what: Names the tasks.
        ask: Returns the answers to the questions of a key, in their order. Its failure is that of all of them.
    """

    def __init__(self, what: str, ask: Callable[[K, Sequence[Q]], Awaitable[Sequence[A]]]) -> None:
        self._what = what
        self._ask = ask
        self._open: dict[K, list[tuple[Q, asyncio.Future[A]]]] = {}
        self._asking: set[asyncio.Task[Sequence[A]]] = set()

    def put(self, key: K, question: Q) -> asyncio.Future[A]:
        """Ask a question at the end of this iteration; return the future of its answer, which is to be awaited."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        if key not in self._open:
            asked = self._open[key] = []
            task = loop.create_task(self._run(key), name=self._what)
            self._asking.add(task)
            task.add_done_callback(functools.partial(self._share, asked))
        self._open[key].append((question, answer))
        return answer

    async def _run(self, key: K) -> Sequence[A]:
        asked = self._open.pop(key)
        answers = await self._ask(key, [question for question, _ in asked])
        if len(answers) != len(asked):
            raise ValueError(f"{len(answers)} answers to {len(asked)} questions")
        return answers

    def _share(self, asked: list[tuple[Q, asyncio.Future[A]]], task: asyncio.Task[Sequence[A]]) -> None:
        """Set the futures of all questions to their answers, or to the failure."""
        self._asking.discard(task)
        failure = None if task.cancelled() else task.exception()
        for place, (_, waiting) in enumerate(asked):
            if waiting.done():
                continue
            if task.cancelled():
                waiting.cancel()
            elif failure is not None:
                waiting.set_exception(failure)
            else:
                waiting.set_result(task.result()[place])
