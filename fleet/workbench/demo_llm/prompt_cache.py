"""The newest prompts, to tell how much of a prompt began an earlier one, as endpoints with a prompt cache do."""

from bisect import bisect_left
from collections import deque

MOST_PROMPTS = 32
MOST_CHARACTERS = 4_000_000
"""Of all kept prompts together."""


class PromptCache:
    """Keeps prompts as text; beyond the bounds the oldest ones are dropped."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0

    def reuse(self, prompt: str) -> int:
        """Return the length of the longest beginning that the prompt shares with an earlier one, and keep it."""
        longest = 0
        for earlier in reversed(self._kept):
            if earlier.startswith(prompt[:longest]):
                longest = _shared(prompt, earlier, longest)
        self._kept.append(prompt)
        self._size += len(prompt)
        while len(self._kept) > MOST_PROMPTS or self._size > MOST_CHARACTERS:
            self._size -= len(self._kept.popleft())
        return longest


def _shared(one: str, other: str, least: int) -> int:
    """Return the length of the common beginning of two texts, which is at least `least`."""
    ends = range(least + 1, min(len(one), len(other)) + 1)
    return least + bisect_left(ends, True, key=lambda end: one[least:end] != other[least:end])
