"""The board's own state, which tools read and change; it outlives restarts as the device's NVS does."""

from dataclasses import dataclass, field

from pydantic import JsonValue


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
    temperature: float = 41.5
    lamp: bool = False
    vision_url: str = ""
    vision_token: str = ""
    system_info: str = "{}"
    upload_headers: dict[str, str] = field(default_factory=dict)
    photo: bytes = b""
    """JPEG that the camera sees; empty when there is nothing to take."""

    @property
    def signal(self) -> str:
        if self.rssi >= -60:
            return "strong"
        return "medium" if self.rssi >= -70 else "weak"

    def status(self) -> JsonValue:
        """Return what `self.get_device_status` answers."""
        return {
            "audio_speaker": {"volume": self.volume},
            "screen": {"brightness": self.brightness, "theme": self.theme},
            "battery": {"level": self.battery, "charging": self.charging},
            "network": {"type": "wifi", "ssid": self.ssid, "signal": self.signal},
            "chip": {"temperature": self.temperature},
        }

    def state(self) -> dict[str, JsonValue]:
        """Return what tools have changed."""
        return {"volume": self.volume, "brightness": self.brightness, "theme": self.theme, "lamp": self.lamp}
