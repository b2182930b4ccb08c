"""Kinds of devices, as data: what is fixed in a build (`Profile`) and how long things take (`Timing`)."""

from dataclasses import dataclass, field, replace
from typing import Literal

from fleet.errors import ConfigError
from fleet.sim.audit import Limits

Mode = Literal["auto", "manual", "realtime"]
Drain = Literal["deferred", "blocking", "none"]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; a pair is a range from which each time is drawn."""

    ota_read: float = 30.0
    ota_retry: float = 10.0
    """Doubles after every failed try."""
    ota_tries: int = 10
    mqtt_connect: float = 10.0
    reconnect: float = 10.0
    hello: float = 10.0
    stale: float = 120.0
    microphone: Range = (0.18, 0.24)
    """From `listen start` to the first packet."""
    clear: Range = (0.01, 0.1)
    """From the state speaking to the clearing of the decode queue."""
    tool: Range = (0.005, 0.05)
    reboot: float = 1.0
    vision: float = 30.0


@dataclass(frozen=True, slots=True)
class Profile:
    """One build of the firmware on one board."""

    name: str
    board: str = "bread-compact-wifi"
    board_type: str = "wifi"
    chip: str = "esp32s3"
    version: str = "2.4.2"
    language: str = "en-US"
    mode: Mode = "auto"
    wake_packets: int = 33
    """Cached packets sent before `detect`; 0 on builds that send neither."""
    wake_interrupts: bool = True
    """A wake word while speaking goes on to listen, not only aborts."""
    mcp: bool = True
    glyph_push: bool = True
    camera: bool = False
    lamp: bool = True
    frame_ms: int = 60
    sequence_may_repeat: bool = False
    exact_length: bool = True
    smallest_datagram: int = 16
    goodbye_without_id: bool = False
    """A goodbye without session id closes the channel too."""
    drain: Drain = "deferred"
    """How `listen start` waits for the rest of the answer in auto mode."""
    queue: int = 40
    mailbox: int = 6
    timing: Timing = field(default_factory=Timing)
    limits: Limits = field(default_factory=Limits)
    ignored: frozenset[str] = frozenset()
    """Rules of the audit that this build does not mind."""


_P1 = Profile("P1")

PROFILES: dict[str, Profile] = {
    "P1": _P1,
    "P1-camera": replace(_P1, name="P1-camera", camera=True),
    "P5": replace(_P1, name="P5", mode="manual", wake_packets=0),
}
"""P1: ESP32-S3 with a wake word, server-side turn detection. P5: push-to-talk."""


def find_profile(name: str) -> Profile:
    """Return a profile by name.

    Raises:
        ConfigError: No profile has this name.
    """
    if name not in PROFILES:
        raise ConfigError(f"no device profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
