"""An offer of firmware or assets: what a job gives one device to download."""

import re
from typing import Final

from msgspec import Struct
from msgspec.json import Decoder

_NAME = re.compile(r"([0-9a-f]{12})-(\d{1,18}-\d{1,9})-([0-9a-f]{32})", re.ASCII)


class FirmwareOffer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An offer, as it stands in the record of a device."""

    id: str
    """Made of the job and the attempt."""
    file: str
    """SHA-256 of the file, in hexadecimal digits."""
    secret: str
    """32 hexadecimal digits that only this device is told."""
    version: str = ""
    force: bool = False
    """Whether the device installs it though it runs a higher version."""


OFFERS: Final[Decoder[FirmwareOffer]] = Decoder(FirmwareOffer)


def offer_name(mac: str, offer: FirmwareOffer) -> str:
    """Return the name of a download: it says which device downloads for which attempt of which job."""
    return f"{mac.replace(':', '')}-{offer.id}-{offer.secret}"


def read_offer_name(text: str) -> tuple[str, str, str] | None:
    """Return MAC, id and secret of a download; None if the name has another form."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    digits, offer, secret = found.groups()
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)), offer, secret
