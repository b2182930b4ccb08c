"""A chat model without a network: it repeats what the user said."""

from collections.abc import AsyncGenerator, Sequence

from fleet.core.ports import USUAL, LlmEvent, LlmOptions, Message, ProviderOptions, TextDelta, ToolOffer


class ParrotLlm:
    """See `fleet.core.ports.LlmAdapter`; the entry point names this class."""

    def __init__(self, options: ProviderOptions) -> None:
        self._name = options.model or "Parrot"

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        said = next((message.text for message in reversed(messages) if message.role == "user"), "")
        yield TextDelta(f"{self._name} says: ")
        yield TextDelta(said)

    async def aclose(self) -> None:
        return
