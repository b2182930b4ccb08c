"""Builds the chat model from the settings."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from pydantic import SecretStr

from fleet.adapters.contained import ContainedLlm
from fleet.adapters.engine_pool import EnginePool
from fleet.adapters.llm.llm_fallback import FallbackLlm
from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.llm_timed import TimedLlm
from fleet.adapters.plugins import load_plugin
from fleet.adapters.sealing import Sealer
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmFactory, LlmOptions, Message, ProviderOptions, ToolOffer
from fleet.ground.errors import ConfigError, ProviderError
from fleet.ground.settings import Settings
from fleet.wire.agents import CompiledAgent, Endpoint

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


class ChatModels:
    """The chat models of all agents: that of the settings, and those that agents name, opened when first needed.

    Args:
        settings: Of the process.
        usual: The model of the settings.
        silence: As of `chat_model`.
    """

    def __init__(self, settings: Settings, usual: Llm, silence: float = VOICE_SECONDS) -> None:
        self._settings = settings
        self._usual = usual
        self._silence = silence
        self._pool = EnginePool[Llm]()

    async def find(self, agent: CompiledAgent) -> Llm:
        """Return an agent's model; see `fleet.core.agent_settings.AgentModels`."""
        endpoint, model = agent.endpoints.get("chat"), agent.document.chat.model
        if endpoint is None and model is None:
            return self._usual
        named = f"{model} {endpoint.model_dump_json() if endpoint else ''}"
        key = hashlib.sha256(named.encode()).hexdigest()
        return await self._pool.find(key, partial(self._open, endpoint, model))

    async def aclose(self) -> None:
        """Close all connections but those of the usual model."""
        await self._pool.aclose()

    async def _open(self, endpoint: Endpoint | None, model: str | None, stack: AsyncExitStack) -> Llm:
        try:
            chosen = _with_endpoint(self._settings, endpoint, model)
            return await stack.enter_async_context(chat_model(chosen, self._silence))
        except ConfigError as error:
            raise ProviderError(f"the agent's chat model: {error}", retryable=False) from error


@asynccontextmanager
async def open_models(settings: Settings, silence: float = VOICE_SECONDS) -> AsyncIterator[ChatModels]:
    """Open the model of the settings; during the block, also those of agents. Arguments and errors: `chat_model`."""
    async with chat_model(settings, silence) as usual:
        models = ChatModels(settings, usual, silence)
        try:
            yield models
        finally:
            await models.aclose()


@asynccontextmanager
async def open_trial_models(settings: Settings) -> AsyncIterator[ChatModels]:
    """Open models for trials: agents with an endpoint of their own can be tried where the settings have no model."""
    async with AsyncExitStack() as stack:
        usual: Llm = _NoLlm()
        if settings.llm_base_url is not None or settings.llm_provider != "openai":
            usual = await stack.enter_async_context(chat_model(settings, settings.llm_timeout))
        models = ChatModels(settings, usual, settings.llm_timeout)
        stack.push_async_callback(models.aclose)
        yield models


class _NoLlm:
    """Stands for the chat model in a process without one."""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """See `fleet.core.ports.Llm`."""
        for event in self._refuse():
            yield event

    def _refuse(self) -> Sequence[LlmEvent]:
        raise ProviderError("LLM_BASE_URL is not set for control", retryable=False)


def _with_endpoint(settings: Settings, endpoint: Endpoint | None, model: str | None) -> Settings:
    """Return settings whose chat model is an agent's; the fallback stays that of the settings."""
    name = model or (endpoint.model if endpoint else None)
    changed: dict[str, Any] = {"llm_model": name} if name else {}
    if endpoint:
        key = Sealer.of(settings.secret_keys).unseal(endpoint.key)
        changed |= {
            "llm_provider": endpoint.adapter,
            "llm_base_url": endpoint.base_url,
            "llm_api_key": SecretStr(key) if key else None,
        }
    chosen = settings.model_copy(update=changed)
    if endpoint and name is None:
        # The endpoint's own list says which model it has.
        chosen.model_fields_set.discard("llm_model")
    return chosen


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
