"""What an event adds to the usage of a device on a day."""

from collections.abc import Callable, Mapping
from typing import Any, Final

_DAY_MS = 24 * 3600 * 1000
Data = Mapping[str, Any]
_ENDED: Final = {"turn.answered": "turns", "turn.failed": "failed", "turn.interrupted": "interrupted"}
_SUMS: Final = ("speech_ms", "input_tokens", "cached_tokens", "output_tokens")


def day_of(at: int) -> int:
    """Return the day of a time in milliseconds since 1970: days since 1970, in UTC."""
    return at // _DAY_MS


def usage_of(kind: str, data: Data) -> dict[str, int]:
    """Return what an event adds, by column of `usage_day`; nothing for most kinds.

    A turn counts in `turns`, and also in `failed` or `interrupted` if it ended so. An answer that was cut while it was
    spoken (`turn.shortened`) was counted as answered before.
    """
    reader = _READERS.get(kind)
    return reader(kind, data) if reader else {}


def _turn(kind: str, data: Data) -> dict[str, int]:
    return {"turns": 1, _ENDED[kind]: 1, **{name: _count(data.get(name)) for name in _SUMS}}


def _spoken(_: str, data: Data) -> dict[str, int]:
    return {"spoken_ms": _count(data.get("spoken_ms"))}


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


_READERS: Final[Mapping[str, Callable[[str, Data], dict[str, int]]]] = {
    "session.started": lambda _, __: {"sessions": 1},
    # Without a turn it is a call of an operator or a job, which uses no agent.
    "tool.called": lambda _, data: {"tool_calls": 1} if data.get("turn") else {},
    "turn.spoken": _spoken,
    **dict.fromkeys(_ENDED, _turn),
}
