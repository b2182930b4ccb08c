"""Places that many share: when they are all taken, whoever has the most of them gives one back."""

from typing import Generic, TypeVar

K = TypeVar("K")


class FairPlaces(Generic[K]):
    """A bounded number of places, each with its holder, who counts for a site.

    For one more than there are, the site with the most places loses the one that was used longest ago. So one site
    takes places from others only as long as these have more than itself.

    Args:
        most: How many places there are.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: dict[str, dict[K, None]] = {}  # by site; what was used longest ago comes first
        self._sites: dict[K, str] = {}

    def __len__(self) -> int:
        return len(self._sites)

    def __contains__(self, holder: K) -> bool:
        return holder in self._sites

    def take(self, holder: K, site: str) -> K | None:
        """Give a holder a place, or note that it has used its own; return who loses a place for it, if anybody."""
        self.leave(holder)
        self._sites[holder] = site
        self._held.setdefault(site, {})[holder] = None
        if len(self._sites) <= self.most:
            return None
        own, fullest = self._held[site], max(self._held.values(), key=len)
        # Where each site has one place, the oldest goes: else a newcomer would never get in.
        loser = next(iter(own if 1 < len(own) == len(fullest) else fullest))
        self.leave(loser)
        return loser

    def use(self, holder: K) -> None:
        """Note that a holder has used its place, if it has one."""
        site = self._sites.get(holder)
        if site is not None:
            held = self._held[site]
            del held[holder]
            held[holder] = None

    def leave(self, holder: K) -> None:
        """Give a holder's place back, if it has one."""
        site = self._sites.pop(holder, None)
        if site is not None:
            held = self._held[site]
            del held[holder]
            if not held:
                del self._held[site]
