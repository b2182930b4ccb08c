"""Two chat endpoints as one `Llm`: the second answers if the first fails before its first text."""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from fleet.adapters.llm.outage import Outage
from fleet.adapters.model_endpoint import EndpointRefused
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, ThoughtDelta, ToolOffer
from fleet.ground.errors import ProviderError

log = logging.getLogger(__name__)


class FallbackLlm:
    """Asks the first model, and the second one if the first fails before its first text.

    After a failure the first model is skipped for a while (`Outage`), so that not every turn waits for its time-out. If
    the second one fails meanwhile, the first is asked nevertheless.

    Args:
        first: The preferred model.
        second: The fallback.
        clock: A steady clock, in seconds.
    """

    def __init__(self, first: Llm, second: Llm, clock: Callable[[], float]) -> None:
        self._first = first
        self._second = second
        self._clock = clock
        self._outage = Outage()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Yield a model's next message; see `fleet.core.ports.Llm`."""
        usual = self._outage.may_try(self._clock())
        order = (self._first, self._second) if usual else (self._second, self._first)
        for llm in order:
            started = False
            try:
                async with aclosing(llm.stream(messages, tools, options)) as events:
                    async for event in events:
                        if not started:
                            self._note_success(llm)
                        started = started or not isinstance(event, ThoughtDelta)
                        yield event
                self._note_success(llm)
                return
            except ProviderError as error:
                self._note_failure(llm, error)
                if started or llm is order[-1]:
                    raise
                log.warning("model failed, asking the other one", extra={"reason": str(error)})

    def _note_success(self, llm: Llm) -> None:
        if llm is self._first:
            self._outage.worked()

    def _note_failure(self, llm: Llm, error: ProviderError) -> None:
        # A refused request does not show that the endpoint is out of order.
        if llm is self._first and not isinstance(error, EndpointRefused):
            self._outage.failed(self._clock())
