"""Sends calls to control: `FleetClient` waits for answers, `AsyncFleetClient` awaits them.

A request that got no answer is sent again, twice at most. Control knows a change by its Idempotency-Key, and does it
once.
"""

import secrets
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2

from fleet.client.call import Answer, Call, ClientError, refusal

_SECONDS: Final = 30.0
_ATTEMPTS: Final = 3
_LONGEST_REFUSAL: Final = 100_000


class FleetClient:
    """A client that waits for answers.

    Args:
        url: Of control, such as `https://fleet.example:8003`.
        token: A bearer token.
        authority: PEM file of the authority of its certificate; without one, those of the system count.
    """

    def __init__(self, url: str, token: str, authority: Path | None = None) -> None:
        self._http = httpx2.Client(**_options(url, token, authority))  # noqa: TID251 - the operator's own server

    def __enter__(self) -> "FleetClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Send a call and return its answer.

        Raises:
            ClientError: Control refused it, or does not answer.
        """
        request = _request(call)
        for attempt in range(_ATTEMPTS):
            try:
                answer = self._http.request(**request)
                return call.read(answer.status_code, answer.content)
            except httpx2.TransportError as error:
                if attempt == _ATTEMPTS - 1:
                    raise _silent(error) from error
        raise AssertionError

    def pages(self, call: Call[Answer]) -> Iterator[Answer]:
        """Yield all pages of a list.

        Raises:
            ClientError: As `send`.
        """
        following: Call[Answer] | None = call
        while following is not None:
            page = self.send(following)
            yield page
            following = _next(following, page)


class AsyncFleetClient:
    """A client whose answers are awaited.

    Args:
        url: Of control, such as `https://fleet.example:8003`.
        token: A bearer token.
        authority: PEM file of the authority of its certificate; without one, those of the system count.
    """

    def __init__(self, url: str, token: str, authority: Path | None = None) -> None:
        self._http = httpx2.AsyncClient(**_options(url, token, authority))  # noqa: TID251 - the operator's own server

    async def __aenter__(self) -> "AsyncFleetClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Send a call and return its answer.

        Raises:
            ClientError: Control refused it, or does not answer.
        """
        request = _request(call)
        for attempt in range(_ATTEMPTS):
            try:
                answer = await self._http.request(**request)
                return call.read(answer.status_code, answer.content)
            except httpx2.TransportError as error:
                if attempt == _ATTEMPTS - 1:
                    raise _silent(error) from error
        raise AssertionError

    async def pages(self, call: Call[Answer]) -> AsyncIterator[Answer]:
        """Yield all pages of a list.

        Raises:
            ClientError: As `send`.
        """
        following: Call[Answer] | None = call
        while following is not None:
            page = await self.send(following)
            yield page
            following = _next(following, page)

    async def upload(self, call: Call[Answer], pieces: AsyncIterator[bytes], kind: str) -> Answer:
        """Send a file piece by piece, once; return the answer.

        Raises:
            ClientError: Control refused it, or does not answer.
        """
        request = {**_request(call), "content": pieces}
        request["headers"] = {**call.headers, "Content-Type": kind}
        # A file takes as long as it takes; every piece of it has a limit.
        request["timeout"] = httpx2.Timeout(_SECONDS, read=None)
        try:
            answer = await self._http.request(**request)
        except httpx2.TransportError as error:
            raise _silent(error) from error
        return call.read(answer.status_code, answer.content)

    async def download(
        self, path: str, query: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[bytes]:
        """Yield a file piece by piece.

        Raises:
            ClientError: Control refused it, or does not answer.
        """
        try:
            asked = self._http.stream("GET", f"/v1{path}", params=dict(query), headers=dict(headers or {}))
            async with asked as answer:
                if answer.status_code >= 400:
                    raise refusal(answer.status_code, (await answer.aread())[:_LONGEST_REFUSAL])
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx2.TransportError as error:
            raise _silent(error) from error


def _options(url: str, token: str, authority: Path | None) -> dict[str, Any]:
    options: dict[str, Any] = {
        "base_url": url.rstrip("/"),
        "headers": {"Authorization": f"Bearer {token}"},
        "timeout": _SECONDS,
        # A proxy of the environment would get the token of a server on this machine.
        "trust_env": False,
    }
    if authority is not None:
        options["verify"] = ssl.create_default_context(cafile=str(authority))
    elif url.lower().startswith("http://"):
        # Trusts nobody: no certificate is shown here, and to read the authorities of the system takes 20 ms of a core.
        options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return options


def _request(call: Call[Answer]) -> dict[str, Any]:
    headers = dict(call.headers)
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    if call.method != "GET":
        headers.setdefault("Idempotency-Key", secrets.token_hex(16))
    return {
        "method": call.method,
        "url": f"/v1{call.path}",
        "params": dict(call.query),
        "content": call.content,
        "headers": headers,
        "timeout": call.seconds,
    }


def _next(call: Call[Answer], page: Answer) -> Call[Answer] | None:
    cursor = getattr(page, "next", None)
    return call.after(str(cursor)) if cursor else None


def _silent(error: httpx2.TransportError) -> ClientError:
    return ClientError(f"control does not answer: {str(error) or type(error).__name__}")
