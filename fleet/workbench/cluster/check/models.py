"""The scripted models, a separate process: every scene calls a tool once, and its answer states the outcome."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleet.workbench.conformance.steering import progress
from fleet.workbench.conformance.steering.records import Asked
from fleet.workbench.conformance.steering.script import Round, Scene
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.steering.voice import MARKS

TOOL = "self.output.set_1"
"""The tool of the devices; the server offers it to the model without `self.`."""
CALLED = "output.set_1"
DONE = "it was done"
_NOT_DONE = "it was not done"
_REPLY_SECONDS = 2.0
_PACE = 0.08
"""Seconds between pieces of the answer: the model still writes while the first sentence is spoken."""


@dataclass(frozen=True, slots=True)
class ActScene(Scene):
    """A scene with the same answer each time; `asked` returns the requests with its mark."""

    asked: Callable[[], Sequence[Asked]] = tuple

    def round(self, number: int) -> Round:
        """Return the answer to the last request."""
        messages = self.asked()[-1].messages
        turn = progress.since_user(messages)
        results = progress.results(turn)
        if not results:
            return Round(calls=((CALLED, {"level": self.mark % 100, "seconds": self.mark}),))
        earlier = sum(message.get("role") == "user" for message in messages) - 1
        return Round(" ".join(progress.unsaid(answer(self.mark, results[-1], earlier), turn)), pace=_PACE)


def answer(mark: int, result: str, earlier: int) -> list[str]:
    """Return the sentences of an answer: the outcome of the call, and the number of earlier questions."""
    outcome = DONE if result == "true" else f"{_NOT_DONE}, {result}"
    return [f"Scene {mark}: {outcome}.", f"Scene {mark} remembers {earlier} questions."]


async def serve(host: str, port: int) -> None:
    """Serve the scripted models until cancelled.

    Raises:
        ConfigError: The address is in use, or is not an address of this machine.
    """
    async with Steering(host, port) as steering:
        for mark in MARKS:
            steering.add(_scene(steering, mark))
        await asyncio.Event().wait()


def _scene(steering: Steering, mark: int) -> ActScene:
    return ActScene(mark, "please act", reply_seconds=_REPLY_SECONDS, asked=lambda: steering.asked(mark))
