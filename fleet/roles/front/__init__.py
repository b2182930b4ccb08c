"""The front: a thin MQTT proxy through which devices that never subscribe reach any broker."""

from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.listener import Front

__all__ = ["Front", "FrontLimits"]
