"""HTTP connections with limits in time, number and form.

uvicorn limits the idle time between requests, but not the time of a request's head, of a body after its answer or of an
unread answer, nor the number of connections. httptools, its fast parser, bounds no head and accepts requests that two
servers may read differently (ADR 34).
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fleet.adapters.net.http.request_body import GatheredBody
from fleet.core.proxies import Proxies

log = logging.getLogger(__name__)

LARGEST_HEAD = 16 * 1024
"""Bytes that may come without a byte of a body: a head, trailers, sizes of chunks. A connection holds a head up to four
times, and thousands of connections together must fit into the memory of a small container."""
MOST_HEADERS = 128
"""As Python's objects, headers of a few bytes take ten times their size. Devices send ten, proxies add as many."""
MOST_WAITING = 8
"""Requests that wait for the answer to an earlier one; devices and proxies wait themselves."""

_NAME = re.compile(rb"(?<=\n)[a-z0-9-]+(?=:)")
"""A header's name in an answer's head."""


@dataclass(slots=True)
class Bounds:
    """Limits of one server's connections; times in seconds."""

    head: float = 10.0
    """From the connection, or the end of an answer, to the end of the next request's head."""
    unread: float = 30.0
    """Longest time in which a client reads nothing of its answer; equals firmware's limit for a download."""
    connections: int = 4096
    each: int = 1024
    """Connections of one address: half of a large site that boots at once. A proxy, which is the address of all its
    clients, may have `connections`."""
    proxies: Proxies = field(default_factory=lambda: Proxies(""))
    here: Counter[str] = field(default_factory=Counter)
    """Connections by address."""
    waiting: dict["BoundedConnection", None] = field(default_factory=dict)
    """Connections without a complete request, in the order in which their clients sent something last."""
    counts: Counter[str] = field(default_factory=Counter)
    """Connections that were ended, by reason."""

    def give_place(self, to: "BoundedConnection") -> None:
        """End another connection or this one, if there are too many."""
        too_many_here = self.here[to.peer] > self.each and not self.proxies.trusts(to.peer)
        if too_many_here or len(to.connections) > self.connections:
            others = (one for one in self.waiting if not too_many_here or one.peer == to.peer)
            next(others, to).end("too many connections")
            log.warning("too many connections", extra={"address": to.peer, "connections": len(to.connections)})

    def note(self, connection: "BoundedConnection") -> None:
        """Note whether a client owes a request, and that it sent something just now."""
        self.waiting.pop(connection, None)
        if not connection.complete and not connection.transport.is_closing():
            self.waiting[connection] = None


class _AnswerTransport:
    """Writes an answer, with capitals in the names of its headers, and its head together with what follows at once.

    uvicorn writes small letters; 4G boards look for `Content-Length` and do not find `content-length`. It also writes
    head and body with a system call each, and each of them wakes up the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.is_closing = transport.is_closing
        self._transport = transport
        self._loop = loop
        self._head = b""
        """Not yet written."""

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def write(self, data: bytes) -> None:
        """Take the head; what follows is written by another method, which replaces this one once there is an answer.

        Set from the beginning, it would be a circle of references in each request that breaks off.
        """
        if data.startswith(b"HTTP/1.1 100 "):
            self._transport.write(data)
            return
        self._head = _NAME.sub(lambda found: found[0].title(), data)
        self.write = self._write_body  # type: ignore[method-assign]
        self._loop.call_soon(self._flush)  # the body may come late, or not at all

    def _write_body(self, data: bytes) -> None:
        self._head += data
        self._flush()

    def _flush(self) -> None:
        if self._head:
            self.write = self._transport.write  # type: ignore[method-assign] # all else is the body
            head, self._head = self._head, b""
            self._transport.write(head)


class BoundedConnection(GatheredBody):
    """A connection within `bounds`, which a subclass for each server holds.

    When there is no place left, a new connection takes the place of the one that has been silent for longest with no
    complete request, be it without a head, with half a body, or between two requests. So slow clients, for whom a
    connection costs nothing, keep nobody out. If all have complete requests, the new connection is ended.
    """

    bounds: Bounds
    complete = 0
    """Complete requests that are not answered."""
    _deadline: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    peer = ""
    """Address of the client."""
    _silent = 0

    @classmethod
    def within(cls, bounds: Bounds) -> type["BoundedConnection"]:
        return type(cls.__name__, (cls,), {"bounds": bounds})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its parent
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self.bounds.here[self.peer] += 1
        self.bounds.give_place(self)
        if not transport.is_closing():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()  # uvicorn lets it run on after a reset, and it holds all of this
        for timer in (self._deadline, self._stuck):
            if timer is not None:
                timer.cancel()
        self.bounds.waiting.pop(self, None)
        self.bounds.here[self.peer] -= 1
        if not self.bounds.here[self.peer]:
            del self.bounds.here[self.peer]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self.bounds.note(self)
        self._silent += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
            self.pass_body()
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")
        if (self._silent > LARGEST_HEAD or len(self.headers or ()) > MOST_HEADERS) and not self.transport.is_closing():
            self.send_400_response("Request head is too large.")

    def send_400_response(self, msg: str) -> None:
        self.bounds.counts["malformed request"] += 1
        if _is_open(self.cycle) and (self.pipeline or self.cycle.response_started or not self.cycle.more_body):
            # The client would take it for the answer to an earlier request.
            self.transport.abort()
        else:
            super().send_400_response(msg)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            return
        fault = _find_fault(self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers)
        if fault or len(self.pipeline) >= MOST_WAITING:
            raise ValueError(fault or "too many requests")  # uvicorn answers 400
        super().on_headers_complete()
        self.headers = []  # What follows are trailers: as headers, they would pass a proxy that sets or removes these.
        self.cycle.transport = cast("asyncio.Transport", _AnswerTransport(self.transport, self.loop))

    def on_body(self, body: bytes) -> None:
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent = 0
        if not self.parser.should_upgrade():
            self.headers.clear()
            self.complete += _is_open(self.cycle)
            self.bounds.note(self)
            super().on_message_complete()

    def on_response_complete(self) -> None:
        # Before the parent's call, which may begin the next request at once.
        self.complete = max(0, self.complete - 1)  # The answer may come before the end of its request.
        self._await_head()
        super().on_response_complete()
        if not _is_open(self.cycle):
            self.cycle.body.clear()  # The application left it unread, and the connection may stay.

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.bounds.unread, self.end, "answer not read")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def _feed(self, data: bytes) -> None:
        """Parse; a request for another protocol counts as one for this protocol (RFC 9110, section 7.8).

        Of such a request, httptools would not read the body. Java's client sends them by default.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                fields = [b"%s: %s\r\n" % field for field in self.headers if field[0] != b"upgrade"]
                version = self.parser.get_http_version().encode()
                head = b"%s %s HTTP/%s\r\n%s\r\n" % (self.parser.get_method(), self.url, version, b"".join(fields))
                data = head + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            else:
                return

    def _await_head(self) -> None:
        self.bounds.note(self)
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.bounds.head, self._look)

    def _look(self) -> None:
        if not _is_open(self.cycle):
            self.end("no request")

    def end(self, reason: str) -> None:
        """Cut the connection, and count why."""
        self.bounds.counts[reason] += 1
        self.bounds.waiting.pop(self, None)
        self.transport.abort()


def _is_open(cycle: RequestResponseCycle | None) -> bool:
    """Whether a request is not answered completely."""
    return cycle is not None and not cycle.response_complete


def _find_fault(method: bytes, url: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return why a head is refused that httptools has accepted."""
    names = [name for name, _ in headers]
    if len(names) > MOST_HEADERS or len(url) + sum([len(name) + len(value) for name, value in headers]) > LARGEST_HEAD:
        return "too large"
    hosts, codings = names.count(b"host"), names.count(b"transfer-encoding")
    if version not in ("1.0", "1.1"):
        return "unknown version"
    if hosts > 1 or (version == "1.1" and not hosts):
        return "not one host"
    if codings:
        coding = headers[names.index(b"transfer-encoding")][1].strip().lower()
        if codings > 1 or coding != b"chunked" or version == "1.0":
            return "unknown transfer coding"
    # httptools would read no body after CONNECT, and takes also a path for its authority.
    return "not a path" if url[:1] != b"/" or b"#" in url or method == b"CONNECT" else ""
