"""How long things take in a device, as data."""

from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; a pair is a range from which each time is drawn."""

    ota_read: float = 30.0
    ota_retry: float = 10.0
    """Doubles after every failed try."""
    ota_tries: int = 10
    activate_soon: float = 3.0
    """Between two activation requests while the user has not bound the device yet (status 202)."""
    activate_later: float = 10.0
    """After any other answer, and without a challenge."""
    activate_tries: int = 10
    mqtt_connect: float = 10.0
    reconnect: float = 10.0
    """From the loss of MQTT, or a failed attempt, to the next attempt: fixed, no jitter."""
    rebuild: float = 60.0
    """From the loss of MQTT to the application's own attempt, made once, and only by an idle device."""
    hello: float = 10.0
    stale: float = 120.0
    warm_up: Range = (0.12, 0.18)
    """From switching the microphone on to the begin of capture, once; the first packet comes a frame later."""
    dma: float = 0.06
    """From handing sound to the loudspeaker to hearing it: 6 DMA buffers of 240 samples at 24 kHz (audio_codec.h)."""
    clear: Range = (0.01, 0.1)
    """From the state speaking to the clearing of the decode queue."""
    tool: Range = (0.005, 0.05)
    photo: Range = (3.0, 15.0)
    """A photo from the call to its answer, as far as the server does not take longer."""
    reboot: float = 1.0
    vision: float = 30.0
