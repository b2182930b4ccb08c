"""The scripted models on one address, while a block lasts."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from fleet.adapters.net.http.server import HttpServer
from fleet.ground.tasks import running
from fleet.workbench.conformance.steering.endpoints import build_router
from fleet.workbench.conformance.steering.records import Asked, HeardAudio, Spoken, Stray
from fleet.workbench.conformance.steering.scenes import Scenes
from fleet.workbench.conformance.steering.script import Scene
from fleet.workbench.conformance.steering.transfer import Curfew, Deliberate, refusal
from fleet.workbench.sim.records import clock

_LOOK_SECONDS = 0.1
"""A condition may hold because of something else than a request."""


class Steering:
    """The scripted models; listens from its construction on and answers inside its `async with` block.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one, see the attribute `port`.
        improvise: Whether a mark without a scene is answered too, with the plainest one.

    Raises:
        ConfigError: The address is in use or not this machine's.
    """

    def __init__(self, host: str, port: int, *, improvise: bool = False) -> None:
        self._scenes = Scenes(improvise=improvise)
        app = FastAPI(title="fleet scripted models", docs_url=None, redoc_url=None, openapi_url=None)
        app.include_router(build_router(self._scenes))
        app.add_exception_handler(HTTPException, _fail)
        self._curfew = Curfew()
        app.add_middleware(self._curfew.around)
        self._server = HttpServer(app, host, port)
        self.port = self._server.port
        self.url = f"http://{host}:{self.port}/v1"
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        reports = logging.getLogger("uvicorn.error")
        quiet = Deliberate()
        reports.addFilter(quiet)
        self._stack.callback(reports.removeFilter, quiet)
        await self._stack.enter_async_context(running("steering", self._server.run))
        self._stack.push_async_callback(self._curfew.close)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def free_mark(self) -> int:
        """Take a mark that is not in use, and drop the records of its last use.

        Raises:
            Overloaded: All are in use.
        """
        return self._scenes.free_mark()

    def add(self, scene: Scene) -> None:
        """Play a scene from now on, instead of the one that has its mark."""
        self._scenes.add(scene)

    def release(self, mark: int) -> None:
        """End a mark's scene and give the mark back; what was recorded stays until somebody takes it again."""
        self._scenes.release(mark)

    def heard(self, mark: int) -> list[HeardAudio]:
        """Return the audio in which recognition was given the mark, alone or with others; the last 32."""
        return list(self._scenes.records.heard[mark])

    def asked(self, mark: int) -> list[Asked]:
        """Return the chat requests whose turn belongs to the mark; the last 64."""
        return list(self._scenes.records.asked[mark])

    def spoken(self, mark: int) -> list[Spoken]:
        """Return what the voice was asked to say for the mark; the last 256, those under way included."""
        return list(self._scenes.records.spoken[mark])

    @property
    def strays(self) -> list[Stray]:
        """The last 100 requests that no scene matched."""
        return list(self._scenes.records.strays)

    @property
    def counts(self) -> dict[str, int]:
        """Requests to `asr`, `chat` and `voice`; `stray asr` and so on count those that no scene matched."""
        return dict(self._scenes.records.counts)

    async def until(self, holds: Callable[[], object], seconds: float) -> bool:
        """Wait until something holds, but no longer than this; return whether it does."""
        deadline = clock.now() + seconds
        changed = self._scenes.records.changed
        while (left := deadline - clock.now()) > 0:
            if await changed.within(min(left, _LOOK_SECONDS), lambda: bool(holds())):
                return True
        return bool(holds())


async def run(host: str, port: int) -> None:
    """Serve the scripted models until cancelled, with a plain scene for every mark.

    Raises:
        ConfigError: The address is in use or not this machine's.
    """
    async with Steering(host, port, improvise=True):
        await asyncio.Event().wait()


async def _fail(_: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "Server error.")
    return refusal(status, detail)
