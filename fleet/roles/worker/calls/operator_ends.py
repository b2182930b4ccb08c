"""Operators' calls that end together with the answers of their devices."""

from collections.abc import Iterator
from contextlib import contextmanager

from fleet.adapters.redis.sessions.calls import OperatorEnd


class OperatorEnds:
    """What the answers end that are waited for now, by device and id of the request."""

    def __init__(self) -> None:
        self._awaited: dict[tuple[str, str], OperatorEnd] = {}

    @contextmanager
    def awaiting(self, mac: str, number: int, end: OperatorEnd | None) -> Iterator[None]:
        """Let the answer to a request that comes during the block end an operator's call, if there is one."""
        if end is None:
            yield
            return
        self._awaited[mac, str(number)] = end
        try:
            yield
        finally:
            del self._awaited[mac, str(number)]

    def find(self, mac: str, request: str, state: str, text: str) -> OperatorEnd | None:
        """Return what an answer ends, with its outcome; None for most answers, and for another one after the first."""
        end = self._awaited.get((mac, request))
        if end is None or (end.state and (end.state, end.text) != (state, text)):
            return None
        end.state, end.text = state, text
        return end
