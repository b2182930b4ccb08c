"""The front: a thin MQTT proxy through which devices that never subscribe reach any broker."""

from fleet.front.door import Front
from fleet.front.limits import Limits

__all__ = ["Front", "Limits"]
