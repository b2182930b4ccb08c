"""The settings of how often something may be done."""

import re

from pydantic import BaseModel, Field, field_validator


class Rates(BaseModel):
    """How often something may be done, `PER_SECOND/BURST`: so often for long, and so often at once."""

    rate_address: str = Field(
        "500/5000",
        description="HTTP requests of one address, for bootstrap, activation, photos and firmware each. A whole site "
        "may have one address.",
    )
    rate_device: str = Field("20/100", description="Bootstrap and activation requests of one device from one address.")
    rate_photos: str = Field("0.2/10", description="Photos of one device.")
    rate_hellos: str = Field("1/20", description="Hellos of one device.")
    rate_tools: str = Field("5/50", description="Tool calls to one device.")
    trusted_proxies: str = Field(
        "127.0.0.1,::1",
        description="Addresses or networks, separated by commas, whose X-Forwarded-For and -Proto are believed.",
    )

    @field_validator("rate_address", "rate_device", "rate_photos", "rate_hellos", "rate_tools")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        if not re.fullmatch(r"(?=.*[1-9].*/)\d{1,6}(\.\d{1,6})?/0*[1-9]\d{0,6}", value):
            raise ValueError("must be PER_SECOND/BURST, such as 0.5/10, both above 0")
        return value
