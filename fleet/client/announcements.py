"""Calls about announcements."""

from fleet.client.call import Call
from fleet.wire.control.announcements import AnnouncementPreview, AnnouncementRequest, AnnouncementState


def create(announcement: AnnouncementRequest) -> Call[AnnouncementState]:
    """Tell devices a text."""
    return Call("POST", "/announcements", AnnouncementState, body=announcement)


def preview(announcement: AnnouncementRequest) -> Call[AnnouncementPreview]:
    """Read by which way how many devices would be told, and why others would not."""
    return Call("POST", "/announcements:preview", AnnouncementPreview, body=announcement)


def read(job: int) -> Call[AnnouncementState]:
    """Read an announcement with its receipts."""
    return Call("GET", f"/announcements/{job}", AnnouncementState)
