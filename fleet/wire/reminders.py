"""A reminder of a device's user, as it is kept."""

from typing import Final

from msgspec import Struct
from msgspec.json import Decoder, Encoder


class Reminder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user wants to be reminded of, and when."""

    id: str
    text: str
    due: int
    """In ms since 1970; of a daily one the next time."""
    language: str = ""
    """ISO 639-1 code of the text; empty if unknown."""
    clock: str = ""
    """The local time of day of a daily one, as `HH:MM`; empty for one that comes once."""

    def write(self) -> bytes:
        """Return it as JSON."""
        return _ENCODER.encode(self)


_ENCODER: Final = Encoder()
REMINDERS: Final[Decoder[Reminder]] = Decoder(Reminder)
