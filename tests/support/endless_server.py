"""An HTTP server on a thread of its own that answers every request with far more than anybody wants."""

import functools
import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MEGABYTE = 1024 * 1024
SIZE = 200 * MEGABYTE
BODIES = ("announced", "chunked", "packed", "slow", "never ends", "headers", "deep", "wide")
_PIECE = b'{"error":"' + b"x" * (64 * 1024)
_JUNK = {"deep": b"[" * 250_000, "wide": b"[" + b"[]," * 15_000 + b"[]]"}
"""JSON of no use that is small enough to be read."""
_REASONS = {200: "OK", 500: "Internal Server Error", 404: "Not Found", 307: "Temporary Redirect"}


class EndlessServer:
    """Answers with one status and one kind of body.

    Args:
        status: HTTP status.
        body: One of `BODIES`.
        kind: Its media type.
    """

    def __init__(self, status: int, body: str, kind: str = "application/json") -> None:
        self._status, self._body, self._kind = status, body, kind
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._over = threading.Event()
        self.asked = 0
        """How many connections it has taken."""
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(240)
        for connection in self._connections:
            # Whoever asked may close only in the loop's next turn, and the loop waits here.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(240)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.asked += 1
                self._connections.append(connection)
                self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(240)
            connection.recv(MEGABYTE)
            if self._body == "headers":
                connection.sendall(b"HTTP/1.1 %d OK\r\n" % self._status)
                while not self._over.is_set():
                    connection.sendall(b"X-More: " + b"x" * 8000 + b"\r\n")
            connection.sendall(self._head())
            for piece in self._pieces():
                chunked = "chunked" in self._framing
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)

    def _head(self) -> bytes:
        where = f"Location: {self.url}/again\r\n" if self._status == 307 else ""
        status = f"HTTP/1.1 {self._status} {_REASONS[self._status]}"
        return f"{status}\r\nContent-Type: {self._kind}\r\n{where}{self._framing}\r\n\r\n".encode()

    @property
    def _framing(self) -> str:
        return {
            "announced": f"Content-Length: {SIZE}",
            "packed": f"Content-Encoding: gzip\r\nContent-Length: {len(_bomb())}",
            **{name: f"Content-Length: {len(body)}" for name, body in _JUNK.items()},
        }.get(self._body, "Transfer-Encoding: chunked")

    def _pieces(self) -> Iterator[bytes]:
        if self._body == "packed":
            yield _bomb()
            return
        if self._body in _JUNK:
            yield _JUNK[self._body]
            return
        if self._body == "slow":
            while not self._over.wait(0.05):
                yield b" "
            return
        sent = 0
        while not self._over.is_set() and (self._body == "never ends" or sent < SIZE):
            yield _PIECE
            sent += len(_PIECE)


@contextmanager
def endless_server(status: int, body: str, kind: str = "application/json") -> Iterator[EndlessServer]:
    server = EndlessServer(status, body, kind)
    try:
        yield server
    finally:
        server.close()


@functools.cache
def _bomb() -> bytes:
    return gzip.compress(bytes(SIZE), 6)
