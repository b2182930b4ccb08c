"""The memory of texts that are not answered yet.

It is counted in bytes of Python strings. With one character beyond the Basic Multilingual Plane, each character of a
text takes four bytes, so a message of 1 MB may take 4 MB.
"""

import sys

from fleet.core.shared_budget import BudgetShare

ALWAYS_TAKEN = 32 * 1024
"""Bytes of a text that is accepted even if the budget is used up; it is longer than any spoken question."""
TEXTS_OF_CONNECTION = 4 * 1024 * 1024 + 8 * ALWAYS_TAKEN
"""Bytes: one message of the largest size with four bytes a character, and eight texts of `ALWAYS_TAKEN`."""


class TextBudget:
    """Counts the texts of one connection until they are answered.

    Args:
        share: Its share in the budget of all connections.
    """

    def __init__(self, share: BudgetShare) -> None:
        self._share = share

    def take(self, text: str) -> bool:
        """Count a text; return False if the budget is used up."""
        size = sys.getsizeof(text)
        return self._share.take(size, always=size <= ALWAYS_TAKEN)

    def give_back(self, text: str) -> None:
        """Stop counting a text that was answered or dropped."""
        self._share.give_back(sys.getsizeof(text))
