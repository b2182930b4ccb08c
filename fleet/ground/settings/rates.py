"""The settings of how often something may be done."""

import re

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import setting

RATE = "PER_SECOND/BURST"


def checked_rate(value: str) -> str:
    """Return a rate as it is.

    Raises:
        ValueError: It is none.
    """
    if not re.fullmatch(r"(?=.*[1-9].*/)\d{1,6}(\.\d{1,6})?/0*[1-9]\d{0,6}", value):
        raise ValueError("must be PER_SECOND/BURST, such as 0.5/10, both above 0")
    return value


class Rates(BaseModel):
    """How often something may be done, `PER_SECOND/BURST`: so often for long, and so often at once.

    `0.5/10` is ten at once, then one every two seconds. Each process counts for itself.
    """

    rate_address: str = setting(
        "500/5000",
        "HTTP requests of one address, for bootstrap, activation, photos, firmware and operators each. Behind a "
        "router a whole site has one address. Beyond it: 429 with Retry-After.",
        ("api",),
        form=RATE,
    )
    rate_device: str = setting(
        "20/100",
        "Bootstrap and activation requests of one device from one address. Beyond it: 429 with Retry-After.",
        ("api",),
        form=RATE,
    )
    rate_photos: str = setting("0.2/10", "Photos of one device. Beyond it: 429 with Retry-After.", ("api",), form=RATE)
    rate_hellos: str = setting(
        "1/20",
        "Hellos of one device, and registrations of one client. Beyond it a device is shown an alert.",
        ("worker",),
        form=RATE,
    )
    rate_tools: str = setting(
        "5/50",
        "Tool calls to one device. Beyond it the model is told that the call was not made.",
        ("worker",),
        form=RATE,
    )
    trusted_proxies: str = setting(
        "127.0.0.1,::1",
        "Proxies whose X-Forwarded-… headers are believed. All visitors behind a proxy that is not "
        "named here share its address and its rate.",
        ("api", "gateway"),
        form="addresses or networks, separated by commas",
    )

    @field_validator("rate_address", "rate_device", "rate_photos", "rate_hellos", "rate_tools")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        return checked_rate(value)
