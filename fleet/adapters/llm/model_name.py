"""The model's name when the operator sets none.

A self-hosted endpoint (vLLM, llama.cpp, Ollama, LM Studio) serves one or a few models and lists them under `/models`:
the only one, or the first one that chats, is used. If there is no list, or the list holds the default of the LLM
Gateway document (section 8.2), that default is used. Many endpoints would refuse a fixed default.
"""

import asyncio
import logging
import re

from fleet.adapters.model_endpoint import ModelEndpoint
from fleet.adapters.model_list import list_models
from fleet.ground.errors import ProviderError

log = logging.getLogger(__name__)

DOCUMENTED = "Qwen3-30B-A3B"
LISTING_SECONDS = 3.0
"""Longest time of the request for the list; the user waits meanwhile."""

_NOT_CHAT = re.compile(r"embed|rerank|bge|whisper|tts|dall-e|moderation|diffusion|speech|asr|ocr", re.IGNORECASE)
"""Names of models that do not chat."""


class ModelName:
    """The model's name at one endpoint, requested once.

    Args:
        endpoint: The endpoint.
        given: The operator's choice; None to ask the endpoint.
    """

    def __init__(self, endpoint: ModelEndpoint, given: str | None) -> None:
        self._endpoint = endpoint
        self._given = given
        self._found = given
        self._one = asyncio.Lock()

    async def find(self, deadline: float) -> str:
        """Return the name.

        Args:
            deadline: Of the answer's beginning to the request that needs the name, on the loop's clock.
        """
        if self._found is not None:
            return self._found
        async with self._one:
            if self._found is None:
                self._found = choose(await self._ask(deadline))
                log.info("model chosen", extra={"endpoint": str(self._endpoint), "model": self._found})
            return self._found

    def forget(self) -> None:
        """Ask again before the next request: the endpoint does not know the name any more."""
        self._found = self._given

    async def _ask(self, deadline: float) -> list[str]:
        soon = min(deadline, asyncio.get_running_loop().time() + LISTING_SECONDS)
        try:
            return await list_models(self._endpoint, soon)
        except ProviderError as error:
            # Many chat endpoints have no list and fail in different ways; an outage fails the request itself as well.
            log.info("endpoint lists no models", extra={"reason": str(error)})
            return []


def choose(names: list[str]) -> str:
    """Return the name to use from an endpoint's list."""
    if DOCUMENTED in names:
        return DOCUMENTED
    return next((name for name in names if not _NOT_CHAT.search(name)), names[0] if names else DOCUMENTED)
