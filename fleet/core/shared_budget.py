"""A budget that all connections share, and what each of them takes of it."""


class SharedBudget:
    """An amount for all connections together.

    Args:
        limit: The amount, in a unit of whoever shares it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        """What all shares have taken."""


class BudgetShare:
    """What one connection takes of a budget, until it is closed.

    Args:
        budget: Shared with the other connections.
        most: What this connection may take; None for no bound but that of the budget.
    """

    def __init__(self, budget: SharedBudget, most: int | None = None) -> None:
        self._budget = budget
        self._most = most
        self._closed = False
        self.taken = 0
        """What this connection has taken."""

    def take(self, amount: int, *, always: bool = False) -> bool:
        """Take so much more; return False, and take nothing, where there is not so much left.

        Args:
            amount: Of the budget.
            always: Take it even beyond the bounds; not once the share is closed.
        """
        taken = self.taken + amount
        beyond = self._budget.used + amount > self._budget.limit or (self._most is not None and taken > self._most)
        if self._closed or (beyond and not always):
            return False
        self._budget.used += amount
        self.taken = taken
        return True

    def change(self, wanted: int) -> bool:
        """Have so much in place of what was taken before; return False, and change nothing, where that is too much."""
        return self.take(wanted - self.taken)

    def give_back(self, amount: int) -> None:
        """Give back a part of what was taken."""
        if not self._closed:
            self._budget.used -= amount
            self.taken -= amount

    def close(self) -> None:
        """Give everything back; nothing is taken any more."""
        self.give_back(self.taken)
        self._closed = True
