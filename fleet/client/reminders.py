"""What users of devices want to be reminded of."""

from urllib.parse import quote

from fleet.client.call import Call, Nothing
from fleet.wire.control.reminders import ReminderList


def read(mac: str) -> Call[ReminderList]:
    """Read the reminders of a device."""
    return Call("GET", f"/devices/{quote(mac, safe=':')}/reminders", ReminderList)


def cancel(mac: str, reminder: str) -> Call[Nothing]:
    """Cancel a reminder."""
    return Call("DELETE", f"/devices/{quote(mac, safe=':')}/reminders/{quote(reminder, safe='')}", Nothing)
