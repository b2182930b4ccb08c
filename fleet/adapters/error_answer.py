"""Answers of model endpoints that are no success."""

import asyncio
from contextlib import suppress
from typing import NamedTuple

import httpx2
from pydantic_core import from_json

from fleet.adapters import http_client
from fleet.adapters.http_client import LARGEST_ERROR
from fleet.adapters.http_streaming import HttpAnswer


class ErrorAnswer(NamedTuple):
    """An unsuccessful answer, with what an error of OpenAI's form says; empty texts where the body says nothing."""

    response: httpx2.Response
    message: str
    code: str
    param: str

    @classmethod
    async def read(cls, answer: HttpAnswer, method: str, url: str, deadline: float) -> "ErrorAnswer":
        """Read a bounded part of an answer's body, until `deadline` on the loop's clock."""
        until = min(deadline, asyncio.get_running_loop().time() + http_client.ERROR_SECONDS)
        content = bytearray()
        with suppress(TimeoutError, httpx2.HTTPError):
            while len(content) < LARGEST_ERROR and (piece := await answer.read(until)):
                content += piece
        # As bytes: of text httpx2 takes ASCII only, and servers write messages in any language.
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in answer.headers.items()
            if name != "content-encoding"
        ]
        response = httpx2.Response(answer.status, headers=headers, request=httpx2.Request(method, url))
        return cls.of(response, bytes(content[:LARGEST_ERROR]))

    @classmethod
    def of(cls, response: httpx2.Response, content: bytes) -> "ErrorAnswer":
        """Read a body as the OpenAI library does, whose import takes a second of CPU and 14 MB."""
        try:
            details = from_json(content)
        except ValueError:
            details = None
        said = details.get("error", details) if isinstance(details, dict) else None
        said = said if isinstance(said, dict) else {}
        code, param = said.get("code"), said.get("param")
        message = str(said.get("message") or response.status_code)
        return cls(response, message, "" if code is None else str(code), param if isinstance(param, str) else "")
