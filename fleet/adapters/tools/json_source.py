"""A client of public HTTP services that answer in JSON."""

from collections.abc import Mapping

import httpx2
from pydantic import JsonValue
from pydantic_core import from_json

from fleet.adapters.http_client import BoundedClient, describe_redirect
from fleet.ground.errors import ProviderError

LARGEST = 256 * 1024
"""Bytes of the longest answer."""

Query = Mapping[str, str | int | float]


class JsonSource:
    """Sends requests with a time limit and without retries, because a user waits for the answer.

    Args:
        seconds: Longest time from the beginning of a request to the last byte of its answer.
    """

    def __init__(self, seconds: float) -> None:
        self._client = BoundedClient(LARGEST, seconds, headers={"User-Agent": "fleet"})

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def ask(
        self, what: str, url: str, query: Query | None = None, *, post: JsonValue = None, key: str | None = None
    ) -> JsonValue:
        """Return the answer to a POST request if `post` is given, else to a GET request.

        Args:
            what: Name of the service in messages.
            url: Without the query.
            query: Its parameters.
            post: Body of a POST request, sent as JSON.
            key: Bearer token.

        Raises:
            ProviderError: The service cannot be reached, did not answer in time, refused, or did not answer in JSON.
        """
        try:
            response = await self._client.request(
                "GET" if post is None else "POST",
                url,
                params=dict(query) if query else None,
                json=post,
                headers={"Authorization": f"Bearer {key}"} if key else None,
            )
        except httpx2.TimeoutException:
            raise ProviderError(f"{what} did not answer in time", retryable=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # The errors' texts are left out: they may contain the URL, and the URL may contain a key.
            raise ProviderError(f"{what} cannot be reached ({type(error).__name__})", retryable=True) from None
        status = response.status_code
        if elsewhere := describe_redirect(response):
            raise ProviderError(f"{what} {elsewhere}", retryable=False)
        if status != httpx2.codes.OK:
            raise ProviderError(f"{what} answered with the status {status}", retryable=status in (408, 429, 503))
        try:
            answer: JsonValue = from_json(response.content, allow_inf_nan=False)
        except ValueError:
            raise ProviderError(f"{what} gave an answer that is no JSON", retryable=False) from None
        return answer
