"""Reminders of devices, as the API shows them."""

from fleet.wire.control.shapes import Shape, Time


class ReminderState(Shape):
    """What a device tells its users at a time. `daily` is the local time of day of one that comes every day."""

    id: str
    text: str
    due: Time
    daily: str | None


class ReminderList(Shape):
    """The reminders of a device, the next one first."""

    items: list[ReminderState]
