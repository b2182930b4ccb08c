"""Checks model endpoints and public host names once at the start of a role, while the role starts.

Without these checks the first user would find a wrong key. A failed check does not end the role, because the endpoint
may start later. It logs what names the variable to correct: an error, or a warning if only the list of models of the
endpoint lacks the model, because such lists are often incomplete.
"""

import asyncio
import difflib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from fleet.ground.errors import ProviderError
from fleet.ground.settings import Settings
from fleet.ground.tasks import isolate, running

log = logging.getLogger(__name__)

_SECONDS = 10.0
_NO_LIST = frozenset({"missing", "request", "refused"})
"""Kinds of failure of endpoints without a list of models; such a failure proves no wrong address or key."""


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model at an endpoint, and the prefix of its variables."""

    prefix: str
    url: str
    key: SecretStr | None
    model: str | None
    """None: the role chooses a model from the endpoint's list."""


@dataclass(frozen=True, slots=True)
class ModelFault:
    """What the list of models of an endpoint shows to be wrong, and what corrects it."""

    reason: str
    remedy: str
    proven: bool
    """Whether requests to the model fail; an endpoint may serve models that it does not list."""


@asynccontextmanager
async def checking_models(*models: CheckedModel) -> AsyncIterator[None]:
    """During the block, ask the endpoint of each model once for its models, and log what is wrong."""

    async def check() -> None:
        for model in models:
            await isolate(f"check of {model.prefix}_BASE_URL", _log_fault(model))

    async with running("check of the models", check):
        yield


@asynccontextmanager
async def checking_names(settings: Settings) -> AsyncIterator[None]:
    """During the block, resolve each public host name once, and log the names that cannot be resolved."""

    async def check() -> None:
        for variable, name in public_names(settings):
            await isolate(f"check of {variable}", _check_name(variable, name))

    async with running("check of public names", check):
        yield


def chat_models(settings: Settings) -> list[CheckedModel]:
    """Return those of the chat model and its fallback that are endpoints."""
    named = settings.llm_model if "llm_model" in settings.model_fields_set else None
    found = []
    if settings.llm_provider == "openai" and settings.llm_base_url:
        found.append(CheckedModel("LLM", settings.llm_base_url, settings.llm_api_key, named))
    if settings.llm_fallback_base_url:
        key, model = settings.llm_fallback_api_key, settings.llm_fallback_model
        found.append(CheckedModel("LLM_FALLBACK", settings.llm_fallback_base_url, key, model))
    return found


def speech_models(settings: Settings) -> list[CheckedModel]:
    """Return those of recognition and voice that are endpoints."""
    found = []
    if settings.asr_base_url and settings.asr_provider in (None, "openai"):
        found.append(CheckedModel("ASR", settings.asr_base_url, settings.asr_api_key, settings.asr_model))
    if settings.tts_base_url and settings.tts_provider in (None, "openai"):
        found.append(CheckedModel("TTS", settings.tts_base_url, settings.tts_api_key, settings.tts_model))
    return found


def photo_models(settings: Settings) -> list[CheckedModel]:
    """Return the vision model, if it is another one than the chat model."""
    own = settings.vision_base_url
    url = own or (settings.llm_base_url if settings.vision_model else None)
    if url is None:
        return []
    key = settings.vision_api_key or (None if own else settings.llm_api_key)
    return [CheckedModel("VISION", url, key, settings.vision_model)]


async def find_fault(model: CheckedModel) -> ModelFault | None:
    """Ask a model's endpoint for its list of models; return what is wrong, or None."""
    # Imported late: the import takes half a second, and an api without a model does not need it.
    from fleet.adapters.model_endpoint import ModelEndpoint
    from fleet.adapters.model_list import list_models

    endpoint = ModelEndpoint(
        model.prefix.partition("_")[0], model.url, model.key.get_secret_value() if model.key else None
    )
    try:
        names = await list_models(endpoint, asyncio.get_running_loop().time() + _SECONDS)
    except ProviderError as error:
        return None if error.kind in _NO_LIST else ModelFault(str(error), _remedy(model, error.kind), proven=True)
    finally:
        await endpoint.aclose()
    if model.model and names and model.model not in names:
        near = ", ".join(difflib.get_close_matches(model.model, names, 3, 0.3) or names[:3])
        advice = f"set {model.prefix}_MODEL to a model of the endpoint, such as {near}"
        return ModelFault(f"{endpoint} does not list the model {model.model}", advice, proven=False)
    return None


def _remedy(model: CheckedModel, kind: str) -> str:
    if kind == "key":
        return f"correct {model.prefix}_API_KEY" if model.key else f"set {model.prefix}_API_KEY"
    return f"correct {model.prefix}_BASE_URL, or start its endpoint"


async def _log_fault(model: CheckedModel) -> None:
    if fault := await find_fault(model):
        level, message = (
            (logging.ERROR, "model will not answer") if fault.proven else (logging.WARNING, "model is not listed")
        )
        log.log(level, message, extra={"reason": fault.reason, "remedy": fault.remedy})


def public_names(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield variable and host of each public address."""
    if settings.public_host:
        yield "FLEET_PUBLIC_HOST", settings.public_host
    if settings.mqtt_public:
        yield "FLEET_MQTT_PUBLIC", settings.mqtt_public.partition(":")[0]
    if settings.http_public:
        yield "FLEET_HTTP_PUBLIC", urlsplit(settings.http_public).hostname or ""
    if settings.udp_public:
        yield "FLEET_UDP_PUBLIC", settings.udp_public.rpartition(":")[0]


async def resolution_fault(host: str) -> str:
    """Return why devices cannot resolve a name to an IPv4 address; empty if this machine can."""
    try:
        async with asyncio.timeout(_SECONDS):
            await asyncio.get_running_loop().getaddrinfo(host, None, family=socket.AF_INET)
    except (OSError, UnicodeError) as error:  # TimeoutError is one
        return getattr(error, "strerror", None) or "no answer"
    return ""


async def _check_name(variable: str, host: str) -> None:
    if why := await resolution_fault(host):
        reason = f"{variable}: {host} cannot be resolved ({why})"
        log.error("public name is unknown", extra={"reason": reason, "remedy": "correct it, or add it to DNS"})
