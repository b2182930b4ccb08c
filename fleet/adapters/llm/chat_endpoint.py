"""A chat endpoint's errors, with their details: when to retry, and which field the endpoint refuses."""

import asyncio
import logging
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from fleet.adapters.error_answer import ErrorAnswer
from fleet.adapters.model_endpoint import Attempts, EndpointRefused, ModelEndpoint
from fleet.ground.errors import ProviderError

log = logging.getLogger(__name__)

_MISSING = 404
_FIELD = re.compile(
    r"\b(temperature|max_tokens|max_completion_tokens|tool_choice|reasoning_content|stream_options|include_usage)\b"
)
_TOOLLESS_STATUSES = frozenset({400, 422, 500, 501})
"""Ollama and vLLM refuse with 400, llama.cpp without templates fails with 500."""
_TOOL = r"\b(?:tools?|function calling)\b(?!\[)"
_TOOLLESS = re.compile(
    rf"{_TOOL}.{{0,40}}(?:\bnot|n't|\brequires?)\b|(?:\bnot|n't|\bunsupported)\b.{{0,40}}{_TOOL}", re.IGNORECASE
)
"""Error texts for any request with tools; an error about `tools[3]` is about a single tool and does not match."""
_ADVICE = (
    "every turn needs them: name a model that can call tools in LLM_MODEL, or switch them on in its server "
    "(vLLM: --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja)"
)


class RetryLater(ProviderError):
    """The endpoint names the time of the next attempt."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message, retryable=True)
        self.seconds = seconds


class UnsupportedFields(EndpointRefused):
    """The endpoint refuses fields of the request, which `faults` names; none if it does not say why it refused."""

    def __init__(self, message: str, faults: tuple[str, ...]) -> None:
        super().__init__(message, retryable=False)
        self.faults = faults


class UnknownModel(ProviderError):
    """The endpoint does not know the model, or there is nothing at this address."""


class ChatEndpoint(ModelEndpoint):
    """An endpoint that raises `RetryLater`, `UnsupportedFields` or `UnknownModel` where its answer allows it."""

    _advised = False

    @property
    def is_google(self) -> bool:
        """Whether this is Google's translation of OpenAI's HTTP to its own."""
        return self.host.endswith(".googleapis.com")

    def _explain_status(self, error: ErrorAnswer) -> ProviderError:
        explained = super()._explain_status(error)
        self._advise(error)
        if isinstance(explained, EndpointRefused):
            faults = tuple(dict.fromkeys([*_FIELD.findall(error.param), *_FIELD.findall(error.message)]))
            reasonless = error.code in ("", str(error.response.status_code))
            return UnsupportedFields(str(explained), faults) if faults or reasonless else explained
        if error.response.status_code == _MISSING:
            return UnknownModel(str(explained), retryable=False)
        seconds = read_retry_after(error.response.headers)
        return RetryLater(str(explained), seconds) if explained.retryable and seconds is not None else explained

    def _advise(self, error: ErrorAnswer) -> None:
        """Log once how to enable tools on a server that refuses them; its status alone does not show the reason."""
        if self._advised or error.response.status_code not in _TOOLLESS_STATUSES or not _TOOLLESS.search(error.message):
            return
        self._advised = True
        log.warning("endpoint takes no requests with tools", extra={"endpoint": str(self), "advice": _ADVICE})


class RetryAfterAttempts(Attempts):
    """Attempts that respect the endpoint's Retry-After; none is made if that is after the deadline."""

    async def pause(self, error: ProviderError) -> None:
        """Wait before the next attempt; see `Attempts.pause`."""
        if not isinstance(error, RetryLater):
            await super().pause(error)
            return
        left = self._deadline - asyncio.get_running_loop().time()
        if error.seconds >= left:
            raise error
        await asyncio.sleep(error.seconds)
        await super().pause(error)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to an answer's headers; None without a readable value.

    A date is compared with the answer's own date, so that no clock has to be right.
    """
    milliseconds, seconds = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", milliseconds, re.ASCII):
        return float(milliseconds) / 1000
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", seconds, re.ASCII):
        return float(seconds)
    try:
        until, now = parsedate_to_datetime(seconds), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
