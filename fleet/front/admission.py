"""Who may come in: what the front decides about a connection's first packet."""

from dataclasses import dataclass

from fleet.wire import mqtt_packet as mqtt
from fleet.wire.identity import Keys
from fleet.wire.topics import canonical_mac, up_topic


@dataclass(frozen=True, slots=True)
class Admitted:
    """A device that proved who it is; `will` is its own last message, empty without one."""

    mac: str
    keepalive: int
    will: bytes = b""
    username: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A connection that is to be closed after `answer`, which may be empty."""

    reason: str
    answer: bytes = b""


def admit(packet: mqtt.Packet, keys: Keys) -> Admitted | Refused:
    """Decide about a connection by its first packet, a CONNECT."""
    wish = mqtt.parse_connect(packet)
    if wish is None:
        return Refused("malformed")
    if isinstance(wish, int):
        return Refused("version", mqtt.refuse_version(wish))
    if canonical_mac(wish.client_id) != wish.client_id:
        return Refused("client id", mqtt.connack(mqtt.REFUSED_CLIENT_ID))
    # Passwords are base64; comparing anything else in constant time raises.
    if wish.username is None or wish.password is None or not wish.password.isascii():
        return Refused("login", mqtt.connack(mqtt.BAD_LOGIN))
    if keys.verify(wish.client_id, wish.username, wish.password) != "device":
        return Refused("not authorised", mqtt.connack(mqtt.NOT_AUTHORISED))
    return Admitted(wish.client_id, wish.keepalive, _last_message(wish), wish.username)


def _last_message(wish: mqtt.Connect) -> bytes:
    will = wish.will
    if will is None or will.retain or will.topic != up_topic(wish.client_id):
        return b""
    return mqtt.publish(will.topic, will.payload)
