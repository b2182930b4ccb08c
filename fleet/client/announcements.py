"""Calls about announcements."""

from fleet.client.call import Call
from fleet.wire.control.announcements import AnnouncementRequest, AnnouncementState


def create(announcement: AnnouncementRequest) -> Call[AnnouncementState]:
    """Tell devices a text."""
    return Call("POST", "/announcements", AnnouncementState, body=announcement)


def read(job: int) -> Call[AnnouncementState]:
    """Read an announcement with its receipts."""
    return Call("GET", f"/announcements/{job}", AnnouncementState)
