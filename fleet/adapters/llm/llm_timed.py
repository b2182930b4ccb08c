"""A chat model with a time limit on the whole message, and its tokens counted."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, TokensUsed, ToolOffer
from fleet.ground.errors import ProviderTimeout
from fleet.ground.metrics import providers

log = logging.getLogger(__name__)


class TimedLlm:
    """A model with a limit on the whole of each request; see LLM_TIMEOUT.

    Args:
        llm: The model, with its own limit on silence.
        seconds: From the request to the last token, with all attempts and a fallback.
    """

    def __init__(self, llm: Llm, seconds: float) -> None:
        self._llm = llm
        self._seconds = seconds

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Yield the model's next message; see `fleet.core.ports.Llm`.

        Raises:
            ProviderTimeout: The message was not complete in time.
        """
        deadline = asyncio.get_running_loop().time() + self._seconds
        log.debug("model asked", extra={"messages": len(messages), "tools": len(tools)})
        try:
            async with asyncio.timeout(None) as limit, aclosing(self._llm.stream(messages, tools, options)) as events:
                while True:
                    limit.reschedule(deadline)
                    event = await anext(events, None)
                    limit.reschedule(None)  # what the caller does with it takes no time of the model's
                    if event is None:
                        return
                    if isinstance(event, TokensUsed):
                        providers.count_tokens(event.usage.input, event.usage.cached, event.usage.output)
                    yield event
        except TimeoutError:
            providers.errors.add("llm", "too_slow")
            message = f"LLM did not finish its answer within {self._seconds:g} s"
            raise ProviderTimeout(message, retryable=True) from None
