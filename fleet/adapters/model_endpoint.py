"""Endpoints of models, OpenAI-compatible or not: one client each, failures in one line, few and bounded attempts."""

import asyncio
import json
import logging
import re
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import httpx2
from pydantic_core import PydanticSerializationError, to_json

from fleet.adapters.error_answer import ErrorAnswer
from fleet.adapters.http_client import AnswerTooLarge, describe_redirect
from fleet.adapters.http_streaming import HttpAnswer, open_streams
from fleet.ground.errors import ConfigError, ProviderError, ProviderTimeout
from fleet.ground.metrics import providers
from fleet.ground.tasks import Backoff

log = logging.getLogger(__name__)

LARGEST_ANSWER = 1024 * 1024
"""Bytes of an answer that is read whole: a photo's description, a list of models."""
LARGEST_STREAM = 32 * 1024 * 1024
"""Bytes of a streamed answer: 11 minutes of speech, or twice the longest text that is accepted."""
_NO_KEY = "none"
"""Sent without a key, as the OpenAI library does: some endpoints want the header although they check no key."""
_JSON = {"Content-Type": "application/json"}
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

    Callers set time limits: the client itself has none and never retries.

    Args:
        what: Names the endpoint in messages: `LLM`, `ASR`, `TTS`.
        base_url: Up to and with `/v1`.
        api_key: None if the endpoint needs none.

    Raises:
        ConfigError: `base_url` is no HTTP address, or its proxy cannot be used.
    """

    def __init__(self, what: str, base_url: str, api_key: str | None) -> None:
        self._name = f"{what} {_public(what, base_url)}"
        self._what = what.lower()
        try:
            self._base_url = httpx2.URL(base_url.rstrip("/"))
            self._base_url.raw_host.decode("ascii").encode("idna")  # as the resolver does
        except (httpx2.InvalidURL, UnicodeError):
            raise _no_address(what) from None
        login = self._base_url.userinfo
        key = f"Basic {b64encode(unquote_to_bytes(login)).decode()}" if login else f"Bearer {api_key or _NO_KEY}"
        self._headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "fleet", "Authorization": key}
        self._streams = open_streams(self._base_url, LARGEST_STREAM)

    def __str__(self) -> str:
        return self._name

    @property
    def host(self) -> str:
        """The host of the base URL."""
        return self._base_url.host

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI itself, which refuses unknown fields."""
        return self.host == "api.openai.com"

    async def aclose(self) -> None:
        await self._streams.aclose()

    def post(self, path: str, deadline: float, **shape: Any) -> AbstractAsyncContextManager["Body"]:
        """Post a request and yield its answer's body; leaving the block closes it. The key is sent as bearer token.

        Args:
            path: After the base URL, beginning with a slash.
            deadline: When the answer must have begun, on the loop's clock.
            shape: `json`, `content`, `data`, `files`, `params` or `headers`, as `httpx2` takes them.

        Raises:
            ProviderError: The endpoint cannot be reached, was silent for too long, or refused.
        """
        return self._send("POST", path, deadline, shape)

    def get(self, path: str, deadline: float, **shape: Any) -> AbstractAsyncContextManager["Body"]:
        """As `post`, for a request without a body."""
        return self._send("GET", path, deadline, shape)

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, deadline: float, shape: dict[str, Any]
    ) -> AsyncGenerator["Body", None]:
        url = f"{self._base_url}{path}"
        target, headers, content = self._write(method, url, shape)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    asking = self._streams.ask(method, target, {**self._headers, **headers}, content)
                    answer = await stack.enter_async_context(asking)
                    if not 200 <= answer.status < 300:
                        raise self._explain_status(await ErrorAnswer.read(answer, method, url, deadline))
            except TimeoutError as error:
                raise self.explain(error) from None
            except httpx2.TransportError as error:
                raise self._unreached(error) from None
            if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
                raise self.failure("failed: the answer is packed", retryable=False)
            yield Body(self, answer)

    def _write(self, method: str, url: str, shape: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
        """Return target, headers and body of a request."""
        if shape.keys() == {"json"}:
            return _target(url), _JSON, _json(shape["json"])
        request = httpx2.Request(method, url, **shape)
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        return request.url.raw_path.decode("ascii"), headers, request.read()

    def explain(self, error: TimeoutError | httpx2.HTTPError, *, needed: bool = True) -> ProviderError:
        """Return the error for an answer that did not arrive completely.

        Args:
            error: Of the connection.
            needed: Whether the failure matters and is counted.
        """
        if isinstance(error, TimeoutError):
            if needed:
                providers.errors.add(self._what, "silent")
            return ProviderTimeout(f"{self._name} was silent for too long", retryable=True)
        kind = "broke_off" if needed else ""
        return self.failure(f"broke off ({type(error).__name__})", retryable=True, kind=kind)

    def _unreached(self, error: httpx2.TransportError) -> ProviderError:
        if isinstance(error, AnswerTooLarge):
            return self.failure(f"failed: {error}", retryable=False)
        how = f"cannot be reached ({_line(str(error)) or type(error).__name__})"
        return self.failure(how, retryable=True, kind="unreachable")

    def failure(self, how: str, *, retryable: bool, kind: str = "bad_answer") -> ProviderError:
        """Return the error for a failure of this endpoint, and count it under `kind`."""
        if kind:
            providers.errors.add(self._what, kind)
        return ProviderError(f"{self._name} {how}", retryable=retryable, kind=kind)

    def _explain_status(self, error: ErrorAnswer) -> ProviderError:
        status, code = error.response.status_code, error.code
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

    def __init__(self, endpoint: ModelEndpoint, answer: HttpAnswer) -> None:
        self.kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        """The media type; empty if the endpoint sends none."""
        self._endpoint = endpoint
        self._answer = answer
        self._left = LARGEST_STREAM

    async def read(self, deadline: float, *, needed: bool = True) -> bytes:
        """Return the next piece, or b"" at the end; `needed` as `ModelEndpoint.explain` has it.

        Raises:
            ProviderError: It broke off, was too large, or nothing came before `deadline` on the loop's clock.
        """
        try:
            piece = await self._answer.read(deadline)
        except (TimeoutError, httpx2.HTTPError) as error:
            raise self._endpoint.explain(error, needed=needed) from None
        self._left -= len(piece)
        if self._left < 0:
            raise self._endpoint.failure("sent an answer without an end", retryable=False)
        return piece

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
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _no_address(what) from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise _no_address(what)
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def _no_address(what: str) -> ConfigError:
    return ConfigError(f"the base URL of {what} must be http://… or https://…")


@lru_cache(maxsize=64)
def _target(url: str) -> str:
    return httpx2.URL(url).raw_path.decode("ascii")


def _json(body: object) -> bytes:
    try:
        return to_json(body, inf_nan_mode="null")
    except (PydanticSerializationError, ValueError):
        # A lone surrogate, which UTF-8 cannot encode: `json` writes it as an escape.
        return json.dumps(body).encode()


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
