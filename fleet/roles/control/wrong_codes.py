"""Wrong codes of waiting devices: a code has six digits, so only a bound on wrong ones keeps it from being guessed."""

import asyncio
from typing import Final

from fleet.core.rates import Buckets, Rate
from fleet.roles.control.access import too_many

WRONG_CODES: Final = Rate(1 / 60, 10)
"""Of one tenant, whatever its tokens and addresses."""
WRONG_CODES_OF_ALL: Final = Rate(1, 100)
"""Of all tenants. Beyond it, a tenant without a wrong code in the last minute may still enter one."""
_ALL = ""


class WrongCodes:
    """Counts the wrong codes of one process of control.

    A code counts as wrong before it is looked up, so that requests at the same time do not pass together.
    """

    def __init__(self) -> None:
        self._of_tenant, self._of_all = Buckets(WRONG_CODES), Buckets(WRONG_CODES_OF_ALL)

    def begin(self, tenant: int) -> None:
        """Count a code of a tenant that is not looked up yet.

        Raises:
            Problem: There were too many wrong ones (429), whether this one is right or not.
        """
        key, now = str(tenant), _clock()
        blameless = self._of_tenant.left(key, now) == WRONG_CODES.burst
        if not blameless and self._of_all.left(_ALL, now) < 1:
            raise too_many("too many wrong codes of all tenants", 1 / WRONG_CODES_OF_ALL.per_second)
        wait = self._of_tenant.take(key, now)
        if wait:
            raise too_many("too many wrong codes of this tenant", wait)

    def was_right(self, tenant: int) -> None:
        """Count a code no more."""
        self._of_tenant.give_back(str(tenant), _clock())

    def was_wrong(self) -> None:
        """Count a code among those of all tenants, too."""
        self._of_all.take(_ALL, _clock())


def _clock() -> float:
    return asyncio.get_running_loop().time()
