"""The settings of rate limits."""

import re

from pydantic import field_validator

from fleet.ground.settings.fields import SettingGroup, setting

RATE = "PER_SECOND/BURST"


def checked_rate(value: str) -> str:
    """Return a rate unchanged.

    Raises:
        ValueError: It is no rate.
    """
    if not re.fullmatch(r"(?=.*[1-9].*/)\d{1,6}(\.\d{1,6})?/0*[1-9]\d{0,6}", value):
        raise ValueError("must be PER_SECOND/BURST, such as 0.5/10, both above 0")
    return value


class RateGroup(SettingGroup):
    """Rate limits, `PER_SECOND/BURST`: the long-term rate, and how many at once.

    `0.5/10` allows ten at once, then one every two seconds. Each process counts separately.
    """

    title = "Bounds"

    rate_address: str = setting("500/5000", ("api",), syntax=RATE)
    """HTTP requests of one address, separately for bootstrap, activation, photos, firmware and operators. All devices
    behind one router share its address. Beyond it: 429 with Retry-After."""
    rate_device: str = setting("20/100", ("api",), syntax=RATE)
    """Bootstrap and activation requests of one device from one address. Beyond it: 429 with Retry-After."""
    rate_photos: str = setting("0.2/10", ("api",), syntax=RATE)
    """Photos of one device. Beyond it: 429 with Retry-After."""
    rate_hellos: str = setting("1/20", ("worker",), syntax=RATE)
    """Hellos of one device, and registrations of one client. Beyond it a device shows an alert."""
    rate_tools: str = setting("5/50", ("worker",), syntax=RATE)
    """Tool calls to one device. Beyond it the model gets the result that the call was not made."""
    trusted_proxies: str = setting(
        "127.0.0.1,::1", ("api", "gateway", "control"), syntax="addresses or networks, separated by commas"
    )
    """Proxies whose X-Forwarded-… headers fleet uses. All clients behind a proxy that is not in this list share its
    address, its rate and its connections."""

    @field_validator("rate_address", "rate_device", "rate_photos", "rate_hellos", "rate_tools")
    @classmethod
    def _is_device_rate(cls, value: str) -> str:
        return checked_rate(value)
