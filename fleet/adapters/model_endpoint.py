"""Endpoints of models, OpenAI-compatible or not: one client each, failures in one line, few and bounded attempts."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic_core import from_json

from fleet.adapters.http_client import LARGEST, AnswerTooLarge, BoundedClient, describe_redirect
from fleet.ground.errors import ConfigError, ProviderError, ProviderTimeout
from fleet.ground.metrics import providers
from fleet.ground.tasks import Backoff

log = logging.getLogger(__name__)

_Response = openai.AsyncAPIResponse[Any]

_LIMITS = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=55.0)
"""Turns are seconds apart: with the libraries' default of five seconds each one would need a new TLS handshake."""
LARGEST_ANSWER = 1024 * 1024
"""Bytes of an answer that is read whole: a photo's description, a list of models."""
LARGEST_STREAM = 32 * 1024 * 1024
"""Bytes of a streamed answer: 11 minutes of speech, or twice the longest text that is accepted."""
_STREAMED = "stream"
_NO_KEY = "none"
"""The library requires a key, even if the endpoint does not."""
_MEANINGS = {
    401: "refused the key",
    403: "refused the key",
    404: "knows no such address or model",
    413: "found the request too large",
    429: "is too busy",
}
_REFUSALS = frozenset({400, 422})
_PASSING = frozenset({408, 409, 425, 429})
_WORD = re.compile(r"[a-z0-9_.-]{1,40}", re.ASCII)


class EndpointRefused(ProviderError):
    """The endpoint refuses the request itself, or a field that it does not know (400, 422)."""


class ModelEndpoint:
    """One endpoint; keeps its connections open between requests.

    `client` speaks OpenAI's HTTP (with `open`), `post` sends any other request.

    Callers set time limits (`within`): the client itself has none and never retries.

    Args:
        what: Names the endpoint in messages: `LLM`, `ASR`, `TTS`.
        base_url: Up to and with `/v1`.
        api_key: None if the endpoint needs none.

    Raises:
        ConfigError: `base_url` is no HTTP address.
    """

    def __init__(self, what: str, base_url: str, api_key: str | None) -> None:
        self._name = f"{what} {_public(what, base_url)}"
        self._what = what.lower()
        self._base_url = base_url.rstrip("/")
        self._login = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = BoundedClient(_largest, None, limits=_LIMITS)
        self.client = openai.AsyncOpenAI(
            base_url=base_url, api_key=api_key or _NO_KEY, max_retries=0, timeout=None, http_client=self._http
        )
        # The library reads these from the environment, where they belong to another key.
        self.client.organization = self.client.project = None

    def __str__(self) -> str:
        return self._name

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI itself, which refuses unknown fields."""
        return self.client.base_url.host == "api.openai.com"

    async def aclose(self) -> None:
        await self.client.close()

    @asynccontextmanager
    async def within(self, deadline: float, *, needed: bool = True) -> AsyncIterator[None]:
        """Turn every failure of the block into a `ProviderError`.

        Args:
            deadline: When the block has to end, on the loop's clock.
            needed: Whether a failure matters and is counted.
        """
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            if needed:
                providers.errors.add(self._what, "silent")
            raise ProviderTimeout(f"{self._name} was silent for too long", retryable=True) from None
        except openai.OpenAIError as error:
            # Not chained: their texts repeat parts of the key or of the request.
            raise self._explain(error) from None
        except httpx2.HTTPError as error:
            raise self.failure(
                f"broke off ({type(error).__name__})", retryable=True, kind="broke_off" if needed else ""
            ) from None

    @asynccontextmanager
    async def open(self, asking: AbstractAsyncContextManager[_Response], deadline: float) -> AsyncIterator["Body"]:
        """Send a request and yield its answer's body; leaving the block closes it.

        Args:
            asking: From the library's `with_streaming_response`.
            deadline: When the answer must have begun, on the loop's clock.
        """
        async with AsyncExitStack() as stack:
            async with self.within(deadline):
                response = await stack.enter_async_context(asking)
            yield Body(self, response.headers, response.iter_bytes())

    @asynccontextmanager
    async def post(self, path: str, deadline: float, **shape: Any) -> AsyncIterator["Body"]:
        """Post a request of any shape and yield its answer's body; leaving the block closes it.

        For endpoints with another API than OpenAI's. The key is sent as bearer token.

        Args:
            path: After the base URL, beginning with a slash.
            deadline: When the answer must have begun, on the loop's clock.
            shape: `json`, `content`, `data`, `files`, `params` or `headers`, as `httpx2` takes them.

        Raises:
            ProviderError: The endpoint cannot be reached, was silent for too long, or refused.
        """
        headers = {**self._login, **shape.pop("headers", {})}
        url = f"{self._base_url}{path}"
        request = self._http.build_request(
            "POST", url, headers=headers, timeout=None, extensions={LARGEST: LARGEST_STREAM}, **shape
        )
        async with AsyncExitStack() as stack:
            async with self.within(deadline):
                response = await self._begin(request)
                stack.push_async_callback(response.aclose)
                if not response.is_success:
                    await response.aread()
                    raise _status_error(response)
            yield Body(self, response.headers, response.aiter_bytes())

    async def _begin(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._http.send(request, stream=True)
        except httpx2.TransportError as error:
            raise openai.APIConnectionError(request=request) from error

    def failure(self, how: str, *, retryable: bool, kind: str = "bad_answer") -> ProviderError:
        """Return the error for a failure of this endpoint, and count it under `kind`."""
        if kind:
            providers.errors.add(self._what, kind)
        return ProviderError(f"{self._name} {how}", retryable=retryable, kind=kind)

    def _explain(self, error: openai.OpenAIError) -> ProviderError:
        if isinstance(error, openai.APIStatusError):
            return self._explain_status(error)
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            if isinstance(cause, AnswerTooLarge):
                return self.failure(f"failed: {cause}", retryable=False)
            how = f"cannot be reached ({_line(str(cause)) or type(cause).__name__})"
            return self.failure(how, retryable=True, kind="unreachable")
        how = f"gave an answer that cannot be read ({type(error).__name__})"
        return self.failure(how, retryable=False, kind="unreadable")

    def _explain_status(self, error: openai.APIStatusError) -> ProviderError:
        status, code = error.status_code, error.code or ""
        log.debug("endpoint refused", extra={"endpoint": self._name, "status": status, "pii": _line(error.message)})
        meaning = _MEANINGS.get(status, "failed" if status >= 500 else "refused the request")
        detail = f"{status}, {code}" if _WORD.fullmatch(code) else f"{status}"
        kind = providers.kind_of(status)
        if status in _REFUSALS:
            providers.errors.add(self._what, kind)
            return EndpointRefused(f"{self._name} refused the request ({detail})", retryable=False)
        if elsewhere := describe_redirect(error.response):
            return self.failure(elsewhere, retryable=False, kind=kind)
        passing = (status in _PASSING and code != "insufficient_quota") or status >= 500
        return self.failure(f"{meaning} ({detail})", retryable=passing, kind=kind)


class Body:
    """An answer's body as it arrives."""

    def __init__(self, endpoint: ModelEndpoint, headers: Mapping[str, str], pieces: AsyncIterator[bytes]) -> None:
        self.kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        """The media type; empty if the endpoint sends none."""
        self._endpoint = endpoint
        self._pieces = pieces
        self._left = LARGEST_STREAM

    async def read(self, deadline: float, *, needed: bool = True) -> bytes:
        """Return the next piece, or b"" at the end; `needed` as `ModelEndpoint.within` has it.

        Raises:
            ProviderError: It broke off, was too large, or nothing came before `deadline` on the loop's clock.
        """
        async with self._endpoint.within(deadline, needed=needed):
            async for piece in self._pieces:
                self._left -= len(piece)
                if self._left < 0:
                    raise self._endpoint.failure("sent an answer without an end", retryable=False)
                if piece:
                    return piece
        return b""

    async def whole(self, deadline: float, largest: int = LARGEST_ANSWER) -> bytes:
        """Return the rest of the body, at most `largest` bytes.

        Raises:
            ProviderError: It broke off, was too large, or was not complete before `deadline` on the loop's clock.
        """
        answer = bytearray()
        while piece := await self.read(deadline):
            answer += piece
            if len(answer) > largest:
                raise self._endpoint.failure("sent an answer that is too large", retryable=False)
        return bytes(answer)


class Attempts:
    """Retries of a request that has had no effect yet.

    Args:
        retries: Attempts after the first.
        deadline: No attempt begins after it, on the loop's clock.
    """

    def __init__(self, retries: int, deadline: float) -> None:
        self._left = retries
        self._deadline = deadline
        self._pauses = Backoff(first=0.25, limit=1.0)

    async def pause(self, error: ProviderError) -> None:
        """Wait before the next attempt.

        Raises:
            ProviderError: `error` itself, if no attempt is left.
        """
        if not error.retryable or not self._left:
            raise error
        self._left -= 1
        await self._pauses.pause()
        if asyncio.get_running_loop().time() >= self._deadline:
            raise error
        log.info("endpoint failed, trying again", extra={"reason": str(error)})


def _public(what: str, base_url: str) -> str:
    """Return the address without a user, a password or a query."""
    wrong = ConfigError(f"the base URL of {what} must be http://… or https://…")
    try:
        parts = urlsplit(base_url)
        place = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not place:
        raise wrong
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def _largest(response: httpx2.Response) -> int:
    streamed = response.request.headers.get("x-stainless-raw-response") == _STREAMED
    return LARGEST_STREAM if streamed else LARGEST_ANSWER


def _status_error(response: httpx2.Response) -> openai.APIStatusError:
    """Return the error of an unsuccessful answer in the OpenAI library's form."""
    try:
        details = from_json(response.content)
    except ValueError:
        details = None
    body = details.get("error", details) if isinstance(details, dict) else details
    message = body.get("message") if isinstance(body, dict) else None
    return openai.APIStatusError(str(message or response.status_code), response=response, body=body)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
