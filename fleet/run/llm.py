"""Builds the chat model from the settings."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from pydantic import SecretStr

from fleet.adapters.contained import ContainedLlm
from fleet.adapters.llm.llm_fallback import FallbackLlm
from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.llm_timed import TimedLlm
from fleet.adapters.plugins import load_plugin
from fleet.core.ports import Llm, LlmFactory, ProviderOptions
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings

VOICE_SECONDS = 8.0
"""Longest wait for the next token for voice users, if LLM_SILENCE_SECONDS is not set."""


@asynccontextmanager
async def chat_model(settings: Settings, silence: float = VOICE_SECONDS) -> AsyncIterator[Llm]:
    """Open the model of the settings, with its fallback; close their connections at the end of the block.

    If there is a fallback, each of the two may be silent for half of the time: users wait no longer than without one.

    Args:
        settings: Of the process.
        silence: Longest wait for the next token in seconds, if LLM_SILENCE_SECONDS is not set.

    Raises:
        ConfigError: There is no endpoint or no such plugin, or an address is not valid.
    """
    load = _provider(settings)
    seconds = silence_limit(settings, silence)
    each = seconds if settings.llm_fallback_base_url is None else seconds / 2
    model = settings.llm_model if "llm_model" in settings.model_fields_set else None
    async with AsyncExitStack() as stack:
        first = ContainedLlm(load(_options(settings, settings.llm_base_url, settings.llm_api_key, model, each)))
        stack.push_async_callback(first.aclose)
        if settings.llm_fallback_base_url is None:
            yield TimedLlm(first, settings.llm_timeout)
            return
        key, name = settings.llm_fallback_api_key, settings.llm_fallback_model
        second = ContainedLlm(_openai(_options(settings, settings.llm_fallback_base_url, key, name, each)))
        stack.push_async_callback(second.aclose)
        both = FallbackLlm(first, second, asyncio.get_running_loop().time)
        yield TimedLlm(both, settings.llm_timeout)


def silence_limit(settings: Settings, default: float) -> float:
    """Return the longest wait for the next token in seconds; at most the limit of the whole request."""
    seconds = default if settings.llm_silence_seconds is None else settings.llm_silence_seconds
    return min(seconds, settings.llm_timeout)


def _provider(settings: Settings) -> LlmFactory:
    name = settings.llm_provider
    if name in LLM_PROVIDERS:
        return LLM_PROVIDERS[name]
    factory: LlmFactory = load_plugin("LLM_PROVIDER", name, "fleet.llm", LLM_PROVIDERS)
    return factory


def _options(
    settings: Settings, url: str | None, key: SecretStr | None, model: str | None, silence: float
) -> ProviderOptions:
    return ProviderOptions(
        url,
        key.get_secret_value() if key else None,
        model,
        temperature=settings.llm_temperature,
        max_tokens=settings.llm_max_tokens,
        seconds=silence,
    )


def _openai(options: ProviderOptions) -> OpenAiLlm:
    if options.base_url is None:
        raise ConfigError("LLM_BASE_URL is missing; only `fleet up` brings a demo model")
    return OpenAiLlm(
        options.base_url,
        options.api_key,
        options.model,
        options.seconds,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
    )


LLM_PROVIDERS: Final[Mapping[str, LlmFactory]] = {"openai": _openai}
"""Built-in providers, by their names in LLM_PROVIDER. The fallback is always an OpenAI-compatible endpoint."""
