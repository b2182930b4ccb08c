"""Decide about a device's connection by its first packet, the CONNECT."""

from dataclasses import dataclass

from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Packet
from fleet.wire.topics import canonical_mac, up_topic


@dataclass(frozen=True, slots=True)
class Admitted:
    """A device with a valid login; `will` is the PUBLISH packet of its Will, empty without one."""

    mac: str
    keepalive: int
    will: bytes = b""
    username: str = ""


@dataclass(frozen=True, slots=True)
class ConnectRefused:
    """A refused connection: send `answer`, which may be empty, and close it."""

    reason: str
    answer: bytes = b""


def admit(packet: Packet, keys: CredentialKeys) -> Admitted | ConnectRefused:
    """Decide about a connection by its first packet, a CONNECT."""
    request = mqtt.parse_connect(packet)
    if request is None:
        return ConnectRefused("malformed")
    if isinstance(request, int):
        return ConnectRefused("version", mqtt.refuse_version(request))
    if canonical_mac(request.client_id) != request.client_id:
        return ConnectRefused("client id", mqtt.connack(mqtt.REFUSED_CLIENT_ID))
    # Passwords are base64. `hmac.compare_digest` raises on text that is not ASCII.
    if request.username is None or request.password is None or not request.password.isascii():
        return ConnectRefused("login", mqtt.connack(mqtt.BAD_LOGIN))
    if keys.verify(request.client_id, request.username, request.password) != "device":
        return ConnectRefused("not authorised", mqtt.connack(mqtt.NOT_AUTHORISED))
    return Admitted(request.client_id, request.keepalive, _last_message(request), request.username)


def _last_message(request: mqtt.Connect) -> bytes:
    will = request.will
    if will is None or will.retain or will.topic != up_topic(request.client_id):
        return b""
    return mqtt.publish(will.topic, will.payload)


class ConnectCheck:
    """Decides about connections, and limits the number of different devices.

    Args:
        keys: Verify the logins.
        most: Different devices that are admitted until `reset`; None for any number.
    """

    def __init__(self, keys: CredentialKeys, most: int | None = None) -> None:
        self.keys = keys
        self._most = most
        self._admitted: set[str] = set()

    @property
    def admitted(self) -> int:
        """Number of devices admitted since the start or the last `reset`; 0 without a limit."""
        return len(self._admitted)

    def decide(self, packet: Packet) -> Admitted | ConnectRefused:
        """Decide about a connection by its first packet, a CONNECT."""
        verdict = admit(packet, self.keys)
        if self._most is None or isinstance(verdict, ConnectRefused) or verdict.mac in self._admitted:
            return verdict
        if len(self._admitted) >= self._most:
            return ConnectRefused("too many devices", mqtt.connack(mqtt.UNAVAILABLE))
        self._admitted.add(verdict.mac)
        return verdict

    def reset(self) -> None:
        """Count from 0 again: the broker has restarted without state."""
        self._admitted.clear()
