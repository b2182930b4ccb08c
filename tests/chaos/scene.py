"""What the scripted chat model does in a turn: it calls the device's tool, and tells what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fleet.workbench.conformance.steering import progress
from fleet.workbench.conformance.steering.records import Asked
from fleet.workbench.conformance.steering.script import Round, Scene
from tests.chaos.history import Turn, classify

NAME = "chaos.act"
_TELLS = {
    "not_sent": "it was not done",
    "unknown": "it may have been done or not",
    "error": "it could not be done",
    "other": "there is no such tool",
}


def _nothing() -> Sequence[Asked]:
    return ()


@dataclass(frozen=True, slots=True)
class ToolScene(Scene):
    """A scene whose last text holds the call's result.

    `turn` takes what the model is told and what it writes, `asked` returns the requests of the scene so far; `more`
    sentences follow the one with the result, and `pace` seconds pass between the pieces of all of them.
    """

    turn: Turn = field(default_factory=lambda: Turn(0, "", 0, 0.0))
    asked: Callable[[], Sequence[Asked]] = _nothing
    more: int = 1
    slow: float = 0.0
    """Seconds between the pieces of the answer."""

    def round(self, number: int) -> Round:
        """Return the answer to the request that came last; its messages say how far the turn is."""
        messages = progress.since_user(self.asked()[-1].messages)
        results = progress.results(messages)
        if not results:
            return Round(calls=((NAME, {"turn": self.turn.number}),))
        for result in results:
            if result not in self.turn.told:
                self.turn.told.append(result)
        self.turn.wanted[:] = self._sentences(results[-1])
        return Round(" ".join(progress.unsaid(self.turn.wanted, messages)), pace=self.slow)

    def _sentences(self, result: str) -> list[str]:
        kind = classify(result, [result] if result.isalnum() else [])
        told = _TELLS.get(kind, f"the device said {result}")
        more = [f"Scene {self.mark} goes on with its part number {part}." for part in range(1, self.more + 1)]
        return [f"Scene {self.mark}: {told}.", *more]
