"""The demo model as an HTTP server in OpenAI's shape. It is not a language model."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from fleet.adapters.net.http.server import HttpServer
from fleet.workbench.demo_llm.body import read_body
from fleet.workbench.demo_llm.completion import DONE, Body, Completion, complete, write_event
from fleet.workbench.demo_llm.prompt_cache import PromptCache
from fleet.workbench.demo_llm.requests import BadRequest, parse_request
from fleet.workbench.demo_llm.turn import Clock, Conversation, reply

log = logging.getLogger(__name__)

_WARMING_UP = Conversation("今天天气怎么样 what time is it")
"""Answered once at start: the dictionaries take a third of a second, which an audio process has not to spare."""
MODEL = "fleet-demo"
LARGEST_BODY = 4 * 1024 * 1024
"""Bytes of a request that are read; a longer one is refused with status 413."""


def read_clock() -> datetime:
    """Return this machine's time in its own zone."""
    return datetime.now().astimezone()


def build_app(clock: Clock = read_clock) -> FastAPI:
    """Return the app: `POST /v1/chat/completions`, `GET /v1/models`, `GET /v1/models/{id}`. Any key is accepted.

    Args:
        clock: Tells the time, with its zone; the only thing besides the request that the words of answers depend on.
    """
    reply(_WARMING_UP, (), clock)
    cache = PromptCache()
    app = FastAPI(title="fleet demo model", openapi_url=None)

    @app.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        asked = parse_request(await read_body(request, LARGEST_BODY))
        answer = complete(asked, clock, cache)
        log.debug("demo model answered", extra={"finish": answer.finish, "pii": answer.text})
        if asked.stream:
            return StreamingResponse(_stream(answer, with_usage=asked.wants_usage), media_type="text/event-stream")
        return JSONResponse(answer.whole())

    @app.get("/v1/models")
    async def list_models() -> Body:
        return {"object": "list", "data": [_model(MODEL)]}

    @app.get("/v1/models/{name:path}")
    async def show_model(name: str) -> Body:
        return _model(name)

    app.add_exception_handler(BadRequest, _fail)
    app.add_exception_handler(HTTPException, _fail)
    return app


class DemoLlmServer:
    """The demo model on an address of its own; listens from its construction on.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one. The attribute `port` tells which.

    Raises:
        ConfigError: The address is in use or not this machine's.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = HttpServer(build_app(), host, port)
        self.port = self._server.port
        self.started = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled; requests that came before wait in the socket."""
        self.started.set()
        await self._server.run()


async def _stream(answer: Completion, *, with_usage: bool) -> AsyncIterator[bytes]:
    for chunk in answer.chunks(with_usage=with_usage):
        yield write_event(chunk)
    yield DONE


def _model(name: str) -> Body:
    return {"id": name, "object": "model", "created": 0, "owned_by": "fleet"}


async def _fail(_: Request, error: Exception) -> Response:
    status, told = (error.status_code, error.detail) if isinstance(error, HTTPException) else (400, str(error))
    param, code = (error.param, error.code) if isinstance(error, BadRequest) else (None, None)
    body = {"message": told, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": body}, status)
