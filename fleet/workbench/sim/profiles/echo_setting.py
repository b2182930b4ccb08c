"""How a device hears its own loudspeaker, as data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EchoSetting:
    """One place of a device.

    Args:
        level_db: The echo's level above the user's speech, in dB.
        delay_ms: From the loudspeaker's buffer to the microphone's, beyond what the timestamps tell.
        seed: Of the room's response.
    """

    level_db: float = 0.0
    delay_ms: float = 90.0
    seed: int = 1
