"""Rate limits of addresses and devices. A refusal says when to try again (429, Retry-After)."""

import asyncio
import logging
import math
from functools import lru_cache
from typing import Literal

from fastapi import Request

from fleet.core.proxies import site
from fleet.core.rates import Buckets, Rate
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.settings import ApiSettings

log = logging.getLogger(__name__)

LimitedRequest = Literal["bootstrap", "invitation", "activation", "photo", "firmware", "operator", "clip"]

_LONGEST_ADDRESS = 64
INVITATIONS = Rate(100, 5000)
"""Of one address. Each invitation takes one of a million codes for a quarter of an hour."""


class Throttle:
    """Limits requests by address and by device.

    Firmware pauses for 10 s or more after a 429, so the limits are far above the rate of any device. The key of a
    device is its MAC with its address: anybody can name the MAC, but not from the device's address.

    Args:
        settings: Hold the rates.
    """

    def __init__(self, settings: ApiSettings) -> None:
        address, device = Rate.parse(settings.rate_address), Rate.parse(settings.rate_device)
        photos = Rate.parse(settings.rate_photos)
        self._addresses: dict[LimitedRequest, Buckets] = {
            "bootstrap": Buckets(address),
            "invitation": Buckets(INVITATIONS),
            "activation": Buckets(address),
            "photo": Buckets(address),
            "firmware": Buckets(address),
            "operator": Buckets(address),
            "clip": Buckets(address),
        }
        self._inputs = Buckets(Rate.parse(settings.rate_input))
        self._devices: dict[LimitedRequest, Buckets] = {
            "bootstrap": Buckets(device),
            "activation": Buckets(device),
            "photo": Buckets(photos),
        }

    def admit_address(self, kind: LimitedRequest, request: Request) -> None:
        """Count a request of an address; call this first.

        Raises:
            RefusedRequest: Too many (429, with Retry-After). The connection is closed: the body was not read.
        """
        address = site_of(request)
        wait = self._addresses[kind].take(address, _now())
        if wait:
            log.debug("address throttled", extra={"request": kind, "address": address})
            later = {"Retry-After": _whole(wait), "Connection": "close"}
            raise RefusedRequest(f"address: {kind}", 429, "too many requests from this address", later)

    def admit_device(self, kind: LimitedRequest, request: Request, mac: str) -> None:
        """Count a request of a device.

        Raises:
            RefusedRequest: Too many (429, with Retry-After).
        """
        wait = self._devices[kind].take(f"{mac} {site_of(request)}", _now())
        if wait:
            log.debug("device throttled", extra={"request": kind, "device": mac})
            later = {"Retry-After": _whole(wait)}
            raise RefusedRequest(f"device: {kind}", 429, "too many requests of this device", later)

    def admit_input(self, mac: str) -> None:
        """Count a text that an operator sends to a device.

        Raises:
            RefusedRequest: Too many (429, with Retry-After).
        """
        wait = self._inputs.take(mac, _now())
        if wait:
            raise RefusedRequest("device: input", 429, "too many texts for this device", {"Retry-After": _whole(wait)})

    def admit_photo(self, mac: str) -> str:
        """Return the seconds that an authenticated device must wait, as text for Retry-After; empty if none."""
        wait = self._devices["photo"].take(mac, _now())
        return _whole(wait) if wait else ""


def _now() -> float:
    return asyncio.get_running_loop().time()


def _whole(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))


def site_of(request: Request) -> str:
    """Return the address that is limited as one; what a trusted proxy names as one need not be an address."""
    client = request.scope.get("client")
    return _site(client[0][:_LONGEST_ADDRESS] if client else "")


@lru_cache(maxsize=4096)
def _site(address: str) -> str:
    return site(address)
