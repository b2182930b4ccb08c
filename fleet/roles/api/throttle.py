"""How often an address and a device may ask; who asks more often is told when to come again."""

import asyncio
import logging
import math
from typing import Literal

from fastapi import Request

from fleet.core.proxies import site
from fleet.core.rates import Buckets, Rate
from fleet.ground.settings import Settings
from fleet.roles.api.refusals import TurnedAway

log = logging.getLogger(__name__)

Door = Literal["bootstrap", "invitation", "activation", "photo", "firmware", "operator"]

INVITATIONS = Rate(100, 5000)
"""Of one address: each may take one of a million codes for a quarter of an hour, and leaves others fewer to mistype."""


class Throttle:
    """Limits requests by where they come from and by whom.

    Firmware answers a 429 with a pause of 10 s and more, so the limits are far above what any device does. A device is
    its MAC and its address together, for anybody may name its MAC: nobody uses up what it may do from where it is.

    Args:
        settings: Hold the rates.
    """

    def __init__(self, settings: Settings) -> None:
        address, device = Rate.parse(settings.rate_address), Rate.parse(settings.rate_device)
        photos = Rate.parse(settings.rate_photos)
        self._addresses: dict[Door, Buckets] = {
            "bootstrap": Buckets(address),
            "invitation": Buckets(INVITATIONS),
            "activation": Buckets(address),
            "photo": Buckets(address),
            "firmware": Buckets(address),
            "operator": Buckets(address),
        }
        self._inputs = Buckets(Rate.parse(settings.rate_input))
        self._devices: dict[Door, Buckets] = {
            "bootstrap": Buckets(device),
            "activation": Buckets(device),
            "photo": Buckets(photos),
        }

    def admit_address(self, door: Door, request: Request) -> None:
        """Return if the address of a request may ask now; to be asked before anything else is done.

        Raises:
            TurnedAway: It may not (429, with Retry-After); the connection is closed, for its body was not read.
        """
        address = site_of(request)
        wait = self._addresses[door].take(address, _now())
        if wait:
            log.debug("address throttled", extra={"door": door, "address": address})
            later = {"Retry-After": _whole(wait), "Connection": "close"}
            raise TurnedAway(f"address: {door}", 429, "too many requests from this address", later)

    def admit_device(self, door: Door, request: Request, mac: str) -> None:
        """Return if a device may ask now.

        Raises:
            TurnedAway: It may not (429, with Retry-After).
        """
        wait = self._devices[door].take(f"{mac} {site_of(request)}", _now())
        if wait:
            log.debug("device throttled", extra={"door": door, "device": mac})
            later = {"Retry-After": _whole(wait)}
            raise TurnedAway(f"device: {door}", 429, "too many requests of this device", later)

    def admit_input(self, mac: str) -> None:
        """Return if an operator may enter text for a device now.

        Raises:
            TurnedAway: It may not (429, with Retry-After).
        """
        wait = self._inputs.take(mac, _now())
        if wait:
            raise TurnedAway("device: input", 429, "too many texts for this device", {"Retry-After": _whole(wait)})

    def admit_photo(self, mac: str) -> str:
        """Return how many seconds a device that has proved itself must wait, as Retry-After has it; empty if none."""
        wait = self._devices["photo"].take(mac, _now())
        return _whole(wait) if wait else ""


def _now() -> float:
    return asyncio.get_running_loop().time()


def _whole(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))


def site_of(request: Request) -> str:
    """Return the address that is limited as one; what a trusted proxy names as one need not be an address."""
    return site(request.client.host if request.client else "")[:64]
