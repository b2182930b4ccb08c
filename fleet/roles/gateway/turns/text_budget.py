"""The memory of texts that are not answered yet.

It is counted in bytes of Python's strings: one character beyond the Basic Multilingual Plane makes each character of a
text take four bytes, so a message of 1 MB may take 4 MB.
"""

import sys

from fleet.core.shared_budget import BudgetShare

ALWAYS_TAKEN = 32 * 1024
"""Bytes of a text that is taken whatever others hold: more than anybody says."""
TEXTS_OF_CONNECTION = 4 * 1024 * 1024 + 8 * ALWAYS_TAKEN
"""Bytes: one message of the largest size, at its widest, and eight of the size that is always taken."""
TEXTS_OF_ALL = 128 * 1024 * 1024
"""Bytes; more than a quarter of 100 connections holds, which is what one address may open by default."""


class TextBudget:
    """Counts the texts of one connection from when they are taken until they are answered.

    Args:
        share: What they may take of the budget of all connections.
    """

    def __init__(self, share: BudgetShare) -> None:
        self._share = share

    def take(self, text: str) -> bool:
        """Count a text; return False where there is no memory for it."""
        size = sys.getsizeof(text)
        return self._share.take(size, always=size <= ALWAYS_TAKEN)

    def give_back(self, text: str) -> None:
        """Count a text no longer: it was answered, or dropped."""
        self._share.give_back(sys.getsizeof(text))
