"""Fields that some endpoints require with the calls that they returned before.

DeepSeek refuses a conversation whose calls lack the thoughts before them (`reasoning_content`), and Gemini one whose
calls lack their signatures (`extra_content`). Neither belongs into a history that other endpoints read too, so each
endpoint's adapter keeps its own for as long as a turn may last. A turn that another worker continues, or an old one,
has none: then the thoughts are sent empty, which these endpoints accept.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleet.core.ports import ToolCall

MOST_CALLS = 2_000
LARGEST = 4_000_000
"""Characters of all thoughts together."""


@dataclass(frozen=True, slots=True)
class CallEcho:
    """The extra fields of one call; the thoughts belong to its whole message."""

    thought: str = ""
    extra: dict[str, Any] | None = None


class CallEchoes:
    """The newest calls of one endpoint; beyond the bounds the oldest ones are dropped."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, CallEcho] = OrderedDict()
        self._size = 0
        self.thinks = False
        """Whether the endpoint has ever sent thoughts with calls."""

    def keep(self, calls: Sequence[ToolCall], thought: str, extras: dict[str, dict[str, Any]]) -> None:
        """Store the fields of a message with calls."""
        self.thinks = self.thinks or bool(thought)
        if not thought and not extras:
            return
        for call in calls:
            self._kept[call.id] = CallEcho(thought, extras.get(call.id))
            self._size += len(thought)
        while len(self._kept) > MOST_CALLS or self._size > LARGEST:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.thought)

    def of(self, call: ToolCall) -> CallEcho | None:
        """Return the fields of a call, if they are known."""
        return self._kept.get(call.id)
