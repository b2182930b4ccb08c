"""Bodies of requests, passed on in large pieces."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BODY_AHEAD = 16 * 1024
"""Bytes of a body that may wait for the application, at which reading pauses; uvicorn pauses at 64 KiB."""


class GatheredBody(HttpToolsProtocol):
    """Gathers a body until `pass_body`: for each piece uvicorn copies all that waits, and a chunk may be one byte."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._gathered = bytearray()

    def on_body(self, body: bytes) -> None:
        self._gathered += body

    def on_message_complete(self) -> None:
        self.pass_body()
        super().on_message_complete()

    def pass_body(self) -> None:
        """Pass on what was gathered; to be called after each piece of data."""
        if self._gathered:
            super().on_body(bytes(self._gathered))
            self._gathered.clear()
            if len(self.cycle.body) > BODY_AHEAD:
                self.flow.pause_reading()
