"""The board's own state, which tools read and change; it outlives restarts as the device's NVS does."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from fleet.workbench.sim.records.audit import Finding


@dataclass(slots=True)
class Board:
    """Volume and brightness in percent, the battery's charge in percent, temperature in degrees Celsius."""

    volume: int = 70
    brightness: int = 75
    theme: str = "light"
    battery: int = 85
    charging: bool = False
    ssid: str = "home"
    rssi: int = -52
    carrier: str = ""
    """The mobile network; a board has either this or Wi-Fi."""
    temperature: float = 41.5
    lamp: bool = False
    outputs: dict[str, int] = field(default_factory=dict)
    """Levels in percent of the outputs that `Profile.extra_tools` counts."""
    vision_url: str = ""
    vision_token: str = ""
    system_info: str = "{}"
    upload_headers: dict[str, str] = field(default_factory=dict)
    photo: bytes = b""
    """JPEG that the camera sees; empty when there is nothing to take."""
    screenshot: bytes = b"\xff\xd8\xff\xe0 a screen \xff\xd9"
    """JPEG of the screen."""
    assets_url: str = ""
    """Where assets come from at the next start."""
    version: str = ""
    """Of the firmware that was installed last; empty: that of the build."""
    installed: str = ""
    """Of an image that has not started yet."""
    upgrades_fail: bool = False
    """Whether downloads of firmware break off, so that the tool answers `true`."""
    broken_versions: frozenset[str] = frozenset()
    """Versions whose images do not start on this board: it comes back with the earlier one."""
    findings: list[Finding] = field(default_factory=list)
    """What tools found the server to do wrong, until the audit has taken it."""

    @property
    def signal(self) -> str:
        if self.rssi >= -60:
            return "strong"
        return "medium" if self.rssi >= -70 else "weak"

    def status(self) -> JsonValue:
        """Return what `self.get_device_status` answers."""
        wifi: JsonValue = {"type": "wifi", "ssid": self.ssid, "signal": self.signal}
        cellular: JsonValue = {"type": "cellular", "carrier": self.carrier, "signal": self.signal}
        return {
            "audio_speaker": {"volume": self.volume},
            "screen": {"brightness": self.brightness, "theme": self.theme},
            "battery": {"level": self.battery, "charging": self.charging},
            "network": cellular if self.carrier else wifi,
            "chip": {"temperature": self.temperature},
        }

    def state(self) -> dict[str, JsonValue]:
        """Return what tools have changed."""
        outputs: dict[str, JsonValue] = {"outputs": dict(self.outputs)} if self.outputs else {}
        return {
            "volume": self.volume,
            "brightness": self.brightness,
            "theme": self.theme,
            "lamp": self.lamp,
            **outputs,
        }
