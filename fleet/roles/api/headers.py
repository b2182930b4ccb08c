"""Header names with capitals: 4G boards look for `Content-Length` and do not find `content-length`."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class TitledHeaders:
    """Writes the names of all response headers with capitals.

    Args:
        app: Answers the requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def titled(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [(name.title(), value) for name, value in message["headers"]]}
            await send(message)

        await self._app(scope, receive, titled if scope["type"] == "http" else send)
