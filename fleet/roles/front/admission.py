"""Who may come in: what the front decides about a connection's first packet."""

from dataclasses import dataclass

from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Packet
from fleet.wire.topics import canonical_mac, up_topic


@dataclass(frozen=True, slots=True)
class Admitted:
    """A device that proved who it is; `will` is its own last message, empty without one."""

    mac: str
    keepalive: int
    will: bytes = b""
    username: str = ""


@dataclass(frozen=True, slots=True)
class ConnectRefused:
    """A connection that is to be closed after `answer`, which may be empty."""

    reason: str
    answer: bytes = b""


def admit(packet: Packet, keys: CredentialKeys) -> Admitted | ConnectRefused:
    """Decide about a connection by its first packet, a CONNECT."""
    wish = mqtt.parse_connect(packet)
    if wish is None:
        return ConnectRefused("malformed")
    if isinstance(wish, int):
        return ConnectRefused("version", mqtt.refuse_version(wish))
    if canonical_mac(wish.client_id) != wish.client_id:
        return ConnectRefused("client id", mqtt.connack(mqtt.REFUSED_CLIENT_ID))
    # Passwords are base64; comparing anything else in constant time raises.
    if wish.username is None or wish.password is None or not wish.password.isascii():
        return ConnectRefused("login", mqtt.connack(mqtt.BAD_LOGIN))
    if keys.verify(wish.client_id, wish.username, wish.password) != "device":
        return ConnectRefused("not authorised", mqtt.connack(mqtt.NOT_AUTHORISED))
    return Admitted(wish.client_id, wish.keepalive, _last_message(wish), wish.username)


def _last_message(wish: mqtt.Connect) -> bytes:
    will = wish.will
    if will is None or will.retain or will.topic != up_topic(wish.client_id):
        return b""
    return mqtt.publish(will.topic, will.payload)


class ConnectCheck:
    """Decides about connections.

    Args:
        keys: Prove devices.
        most: Different devices that are let in until `forget`; None for any number.
    """

    def __init__(self, keys: CredentialKeys, most: int | None = None) -> None:
        self.keys = keys
        self._most = most
        self._met: set[str] = set()

    @property
    def met(self) -> int:
        """How many devices were let in since the beginning, or since `forget`; 0 where nobody counts them."""
        return len(self._met)

    def decide(self, packet: Packet) -> Admitted | ConnectRefused:
        """Decide about a connection by its first packet, a CONNECT."""
        verdict = admit(packet, self.keys)
        if self._most is None or isinstance(verdict, ConnectRefused) or verdict.mac in self._met:
            return verdict
        if len(self._met) >= self._most:
            return ConnectRefused("too many devices", mqtt.connack(mqtt.UNAVAILABLE))
        self._met.add(verdict.mac)
        return verdict

    def forget(self) -> None:
        """The broker has met nobody: begin anew."""
        self._met.clear()
