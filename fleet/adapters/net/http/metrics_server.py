"""The monitoring port of a process: /metrics, /healthz, /readyz."""

import asyncio
import json
import logging
from contextlib import suppress

from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.net.listening import listen
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import exposition
from fleet.ground.tasks import isolate

log = logging.getLogger(__name__)

LIMIT_SECONDS = 5.0
"""Longest time of a connection: one request, one answer."""
MOST_CONNECTIONS = 16
LARGEST_HEAD = 8192

_JSON = "application/json"
_PHRASES = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class MetricsServer:
    """A small HTTP server: GET and HEAD, one request per connection; listens from its construction on.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        readiness: Of the process.

    Raises:
        ConfigError: The address is in use or not this machine's.
    """

    def __init__(self, host: str, port: int, readiness: Readiness) -> None:
        try:
            self._socket = listen(host, port, 64)
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError(f"cannot listen on {host}:{port}: {reason}; set FLEET_METRICS_PORT") from error
        self.port: int = self._socket.getsockname()[1]
        self._readiness = readiness
        self._connections = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        server = await asyncio.start_server(self._accept, sock=self._socket, limit=LARGEST_HEAD)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= MOST_CONNECTIONS:
                await isolate("metrics connection", self._serve(reader, writer))
        finally:
            self._connections -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
            async with asyncio.timeout(LIMIT_SECONDS):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    head = b""
                writer.write(await self._answer(head))
                await writer.drain()

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        if not path.startswith("/"):
            status, kind, body = 400, _JSON, b"{}"
        elif method not in (b"GET", b"HEAD"):
            status, kind, body = 405, _JSON, b"{}"
        else:
            status, kind, body = await self._look(path)
        head_text = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        return f"{head_text}Connection: close\r\n\r\n".encode() + (b"" if method == b"HEAD" else body)

    async def _look(self, path: str) -> tuple[int, str, bytes]:
        match path:
            case "/metrics":
                await self._readiness.look()
                return 200, exposition.CONTENT_TYPE, exposition.render()
            case "/healthz":
                return 200, _JSON, b'{"status":"alive"}'
            case "/readyz":
                reason = await self._readiness.look()
                if reason:
                    return 503, _JSON, json.dumps({"status": "unavailable", "reason": reason}).encode()
                return 200, _JSON, b'{"status":"ready"}'
            case _:
                return 404, _JSON, b"{}"
