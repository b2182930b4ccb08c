"""The messages that a scripted device got, and waiting for them."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.workbench.sim.messages import message as firmware
from fleet.workbench.sim.messages.message import JsonObject, item, text
from fleet.workbench.sim.records import clock
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.expectation import Failed, require

MOST = 5_000
"""Messages kept; a server that sends more to one device within a check floods it."""


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One MQTT message: `at` on the clock; `body` empty when it is no JSON object."""

    at: float
    body: JsonObject
    raw: bytes
    topic: str

    @property
    def kind(self) -> str:
        return text(self.body, "type") or ""

    @property
    def state(self) -> str:
        return text(self.body, "state") or ""

    @property
    def session(self) -> str:
        return text(self.body, "session_id") or ""

    def __getitem__(self, name: str) -> object:
        return item(self.body, name)

    def __str__(self) -> str:
        return self.raw.decode(errors="replace")[:200]


class ReceivedMessages:
    """Messages of one device, `all` in order of arrival."""

    def __init__(self) -> None:
        self.all: list[ReceivedMessage] = []
        self._signal = ChangeSignal()
        self._clock = clock.now

    def add(self, topic: str, payload: bytes) -> ReceivedMessage:
        body = firmware.parse(payload) or {}
        message = ReceivedMessage(self._clock(), body, payload, topic)
        require(len(self.all) < MOST, f"the server sent more than {MOST} messages")
        self.all.append(message)
        self._signal.notify()
        return message

    def find(self, kind: str, state: str = "", *, after: float = 0.0) -> list[ReceivedMessage]:
        """Return the messages of a type, and of a state where one is named, that came later than `after`."""
        return [
            message
            for message in self.all
            if message.kind == kind and (not state or message.state == state) and message.at > after
        ]

    async def expect(
        self,
        kind: str,
        state: str = "",
        *,
        seconds: float,
        after: float = 0.0,
        where: Callable[[ReceivedMessage], bool] | None = None,
    ) -> ReceivedMessage:
        """Return the first such message later than `after`, waiting for it.

        Raises:
            Failed: It did not come within so many seconds from now.
        """

        def found() -> list[ReceivedMessage]:
            return [one for one in self.find(kind, state, after=after) if where is None or where(one)]

        if not await self._signal.within(seconds, lambda: bool(found())):
            raise Failed(f"no {_name(kind, state)} within {seconds:g} s")
        return found()[0]

    async def expect_none(self, kind: str, state: str = "", *, seconds: float, after: float = 0.0) -> None:
        """Wait so many seconds, and see to it that no such message comes meanwhile or came since `after`.

        Raises:
            Failed: One came.
        """
        await self._signal.within(seconds, lambda: bool(self.find(kind, state, after=after)))
        if got := self.find(kind, state, after=after):
            raise Failed(f"unexpected {_name(kind, state)}: {got[0]}")

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until something about the messages holds; return whether it does."""
        return await self._signal.within(seconds, holds)


def _name(kind: str, state: str) -> str:
    return f"`{kind} {state}`".replace(" `", "`")
