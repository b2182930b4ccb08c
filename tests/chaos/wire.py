"""What of a device is not its behaviour: its connections, and what waits for them."""

from collections import deque

from fleet.workbench.sim.scripted.mqtt_connection import RawMqttConnection
from tests.chaos.channel import Channel


class Wire:
    """A device's connections, and what waits for them."""

    def __init__(self) -> None:
        self.line: RawMqttConnection | None = None
        self.early: deque[bytes] = deque(maxlen=64)
        self.channel: Channel | None = None
        self.session = ""
        self.welcomed = False
        self.heard_at = 0.0
        self.speech: deque[bytes] = deque()
        """Packets of what the user says; silence when there are none."""

    def capture(self, channel: Channel) -> None:
        channel.send(self.speech.popleft() if self.speech else channel.silence)
