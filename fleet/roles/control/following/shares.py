"""How many places one token and one tenant may take, so that others find some."""

from collections.abc import Sequence

from fleet.ground.errors import FleetError
from fleet.roles.control.access import Principal


class ShareTaken(FleetError):
    """A token or its tenant has all the places that it may have; the message names what and how many."""


def check_share(who: Principal, holders: Sequence[Principal], most: int, what: str) -> None:
    """Check that a token has less than a quarter of all places, and its tenant less than half of them.

    Args:
        who: Wants one more place.
        holders: Who has a place now, once for each place; those of other tenants do not count.
        most: How many places there are for all.
        what: A place, in the plural.

    Raises:
        ShareTaken: They have not.
    """
    check_count(sum(is_same_token(who, one) for one in holders), max(1, most // 4), f"{what} of one token")
    check_count(sum(one.tenant == who.tenant for one in holders), max(1, most // 2), f"{what} of one tenant")


def check_count(count: int, most: int, what: str) -> None:
    """Check that there is room for one more.

    Raises:
        ShareTaken: There is none.
    """
    if count >= most:
        raise ShareTaken(f"too many {what} at a time: at most {most}")


def is_same_token(one: Principal, other: Principal) -> bool:
    """Return whether two requests were sent with one token, or by one account."""
    return (one.token, one.tenant, one.kind, one.name) == (other.token, other.tenant, other.kind, other.name)
