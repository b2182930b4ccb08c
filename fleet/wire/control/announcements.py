"""Announcements, as the API of control gives and takes them."""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from fleet.wire.announcements import LONGEST_TEXT, USUAL_WAYS, Way
from fleet.wire.control.device_texts import Mac, QueryText
from fleet.wire.control.jobs import LONGEST_LIFE, Job, JobPreview, Share, SkipCount, hours
from fleet.wire.control.shapes import NUMBER, Shape


class AnnouncementRequest(Shape):
    """A text that devices are told. Exactly one of `query` and `device` is set; an empty query means all devices."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "Dinner is ready.", "query": "tag.site=berlin", "quiet": "22:00-07:00"}]
        }
    )
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TEXT)]
    language: Annotated[str, StringConstraints(pattern="^([a-z]{2})?$")] = ""
    """Of the text; empty to find it out from the text."""
    query: QueryText | None = None
    device: Mac | None = None
    ways: Annotated[tuple[Way, ...], Field(min_length=1, max_length=4)] = USUAL_WAYS
    """How devices may be told. They are tried in the order `speech`, `notify`, `alert`, `wake`: spoken in a session;
    fetched and played by an idle device (firmware 2.5); shown; kept for the next session."""
    quiet: Annotated[str, AfterValidator(hours)] = ""
    """Hours in which a device is left alone, in its own time zone, such as `22:00-07:00`."""
    expires_seconds: Annotated[int, Field(ge=1, le=LONGEST_LIFE), NUMBER] = 3600
    """After that, devices that were not told are given up."""
    rate: Annotated[float, Field(gt=0, le=5_000, allow_inf_nan=False), NUMBER] = 100
    """Devices a second."""
    window: Annotated[int, Field(ge=1, le=10_000), NUMBER] = 5_000
    """Devices that are told at a time."""
    halt_share: Share = 0.1
    """It halts when more of its recent outcomes are failures: nobody knows whether the device was told. 1: never.
    Devices that are away or busy are no failures."""

    @model_validator(mode="after")
    def _one_target(self) -> "AnnouncementRequest":
        if (self.query is None) == (self.device is None):
            raise ValueError("an announcement has either a query or a device")
        return self


class WayCount(Shape):
    """How many devices would be told by a way."""

    way: Way
    devices: int


class AnnouncementPreview(JobPreview):
    """What an announcement would do now: every device is told by one of `ways`, `waiting`, or `skipped`.

    `waiting` ones are told later, if the reason ends before the announcement expires. Those of the way `wake` are told
    in their next session. With more than 100,000 connected devices the numbers of these are an estimate.
    """

    ways: list[WayCount]
    waiting: list[SkipCount]
    left_today: int
    """Announcements that the tenant may still make today."""


class AnnouncementState(Shape):
    """An announcement: the job that tells the devices, and how many were told by which way.

    `receipts` are counts such as `notify: played`. `taken`: an idle device has begun to play. `played`, `cut short`:
    how much of it. `spoken`: in a session. `shown`: nothing proves that anybody saw it.
    """

    job: Job
    receipts: dict[str, int]
