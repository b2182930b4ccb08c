"""How fast the devices of a crowd were told something, by what each counted in tenths of a second."""

from collections import Counter
from collections.abc import Mapping, Sequence


def times_of(counts: Mapping[str, int], before: Mapping[str, int] | None = None) -> list[float]:
    """Return when the newest things came, in order, in seconds of the system's monotonic clock."""
    fresh = Counter(counts) - Counter(before or {})
    return sorted(int(tenth) / 10 for tenth, count in fresh.items() for _ in range(count))


def rate_of(times: Sequence[float]) -> float:
    """Return how many came in a second, without the first and the last tenth."""
    middle = times[len(times) // 10 : -len(times) // 10 or None]
    return len(middle) / max(middle[-1] - middle[0], 0.1) if middle else 0.0
