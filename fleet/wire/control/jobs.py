"""Jobs, as the API of control gives and takes them."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from fleet.wire.control.desired import DesiredPatch
from fleet.wire.control.device_texts import QueryText
from fleet.wire.control.groups import GroupName
from fleet.wire.control.images import AssetsOrder, FirmwareOrder
from fleet.wire.control.shapes import NUMBER, GivenTime, Shape, Time
from fleet.wire.job_states import Collected, ExecutionState, JobKind, JobState

MOST_STAGES = 10
LONGEST_LIFE = 90 * 24 * 3600
_QUIET = re.compile(r"(?:(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d)?", re.ASCII)
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), NUMBER]
_Seconds = Annotated[int, Field(ge=0, le=LONGEST_LIFE), NUMBER]


def hours(text: str) -> str:
    """Check quiet hours.

    Raises:
        ValueError: They have another form.
    """
    begin, _, end = text.partition("-")
    if not _QUIET.fullmatch(text) or (text and begin == end):
        raise ValueError("quiet hours are HH:MM-HH:MM, such as 22:00-07:00")
    return text


class JobStage(Shape):
    """A part of the devices, with those of all earlier stages. Exactly one of `share`, `count` and `query` is set."""

    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), NUMBER] | None = None
    count: Annotated[int, Field(ge=1, le=10_000_000), NUMBER] | None = None
    query: Annotated[QueryText, Field(min_length=1)] | None = None
    min_success: Share = 0.95
    """Least share of successes with which the next stage begins; below it the job halts."""
    min_sample: Annotated[int, Field(ge=1, le=100_000), NUMBER] = 20
    """Outcomes with which it is judged though devices still wait; a smaller stage is judged at its end."""
    soak_seconds: _Seconds = 0
    """How long it is watched after that."""
    approve: bool = False
    """Whether a person must let the next stage begin."""

    @model_validator(mode="after")
    def _one(self) -> "JobStage":
        if sum(one is not None for one in (self.share, self.count, self.query)) != 1:
            raise ValueError("a stage has one of share, count and query")
        return self


class JobPolicy(Shape):
    """How a job goes through its devices. The last stage has all of them: its share is 1."""

    stages: Annotated[tuple[JobStage, ...], Field(min_length=1, max_length=MOST_STAGES)] = (JobStage(share=1.0),)
    rate: Annotated[float, Field(gt=0, le=5_000, allow_inf_nan=False), NUMBER] = 10
    """Devices a second."""
    window: Annotated[int, Field(ge=1, le=10_000), NUMBER] = 50
    """Devices under way at a time. It bounds the harm."""
    halt_share: Share = 0.1
    """The job halts when more of its recent outcomes are failures; unknown ones are."""
    halt_sample: Annotated[int, Field(ge=1, le=100_000), NUMBER] = 20
    """Outcomes without which it does not halt for that."""
    timeout_seconds: Annotated[int, Field(ge=1, le=3_600), NUMBER] = 60
    """How long a call may wait until it is sent; how long its answer may take depends on the tool."""
    retries: Annotated[int, Field(ge=0, le=10), NUMBER] = 0
    """Of calls that were not sent in time, and of unknown ones if they may be repeated."""
    retry_seconds: Annotated[int, Field(ge=1, le=86_400), NUMBER] = 60
    """Pause before the first retry; it doubles."""
    repeatable: bool | None = None
    """Whether a call may be made again though it may have been done; null: as the tool is known."""
    idle: bool = True
    """Whether devices in a session are left alone until it is over."""
    quiet: Annotated[str, AfterValidator(hours)] = ""
    """Hours in which a device is left alone, in its own time zone, such as `22:00-07:00`."""
    expires_seconds: Annotated[int, Field(ge=1, le=LONGEST_LIFE), NUMBER] = 7 * 24 * 3600
    """After that, devices that were not reached are given up."""

    @model_validator(mode="after")
    def _whole(self) -> "JobPolicy":
        if self.stages[-1].share != 1:
            raise ValueError("the last stage has the share 1")
        return self


class JobRequest(Shape):
    """A new job. `query` says which devices it has; an empty one means all of the tenant."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "quieter in Berlin",
                    "kind": "tool",
                    "tool": "self.audio_speaker.set_volume",
                    "arguments": {"volume": 40},
                    "query": "tag.site=berlin",
                    "policy": {"stages": [{"count": 20, "soak_seconds": 600}, {"share": 1}], "rate": 50, "window": 50},
                }
            ]
        }
    )
    name: GroupName
    kind: JobKind = "tool"
    tool: Annotated[str, StringConstraints(max_length=128)] = ""
    """Of the kind `tool`."""
    arguments: Annotated[dict[str, Any], Field(default_factory=dict, max_length=64)]
    """Of the kind `tool`."""
    collect: Collected = "status"
    """Of the kind `collect`: what devices are asked for; the attribute of that name gets it."""
    shadow: DesiredPatch | None = None
    """Of the kind `shadow`: the change of each device's desired state."""
    agent: Annotated[int, Field(ge=1, lt=2**62), NUMBER] | None = None
    """Of the kind `agent`: the id of the agent that each device gets."""
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    """Of the kind `rotate_credentials`: the id of the key that signs now."""
    firmware: FirmwareOrder | None = None
    """Of the kind `firmware`."""
    assets: AssetsOrder | None = None
    """Of the kind `assets`."""
    query: QueryText
    continuous: bool = False
    """Whether devices that the query means later join, each once, until the job expires."""
    policy: JobPolicy = JobPolicy()
    starts: GivenTime | None = None
    """When it begins, at most 90 days ahead; its devices are chosen then. Null: at once."""
    supersedes: GroupName | None = None
    """A key: when the job begins, older jobs with the same key stop."""

    @model_validator(mode="after")
    def _fitting(self) -> "JobRequest":
        if self.kind == "announce":
            raise ValueError("announcements are made with POST /v1/announcements")
        if (self.kind == "tool") != bool(self.tool) or (self.arguments and self.kind != "tool"):
            raise ValueError("a job of the kind tool names a tool, and no other kind does or has arguments")
        if (self.kind == "shadow") != (self.shadow is not None) or (self.kind == "agent") != (self.agent is not None):
            raise ValueError("a job of the kind shadow or agent has the field of its name, and no other kind has it")
        if self.shadow is not None and "agent" in self.shadow.desired.model_fields_set:
            raise ValueError("the kind agent gives agents to devices")
        if (self.kind == "rotate_credentials") != bool(self.key):
            raise ValueError("a job of the kind rotate_credentials names a key, and no other kind does")
        for kind in ("firmware", "assets"):
            if (self.kind == kind) != (getattr(self, kind) is not None):
                raise ValueError(f"a job of the kind {kind} has {kind}, and no other kind does")
        return self


class JobCounts(Shape):
    """How many devices of a job are in each state. `sent` may have been published; `unknown` may have been done.

    `verifying` ones were told, and what they do next shows whether it was done.
    """

    queued: int = 0
    waiting: int = 0
    sent: int = 0
    ok: int = 0
    error: int = 0
    unknown: int = 0
    timed_out: int = 0
    expired: int = 0
    skipped: int = 0
    cancelled: int = 0
    verifying: int = 0


class Job(Shape):
    """A job. `stage` counts from 1; `reason` tells why it halted, or what it waits for.

    `version` rises with each change of a person, and with each new state or stage; it is the ETag.
    """

    id: int
    name: str
    kind: JobKind
    tool: str
    arguments: dict[str, Any]
    shadow: dict[str, Any] | None = None
    agent: int | None = None
    key: str
    firmware: FirmwareOrder | None = None
    assets: AssetsOrder | None = None
    query: str
    continuous: bool
    policy: JobPolicy
    state: JobState
    reason: str
    stage: int
    devices: int
    counts: JobCounts
    created: Time
    created_by: str
    starts: Time | None
    supersedes: str
    expires: Time
    ended: Time | None
    version: int


class SkipCount(Shape):
    """How many devices are skipped for a reason."""

    reason: str
    devices: int


class JobPreview(Shape):
    """What a job would do: its devices, those connected now, and those that would be skipped."""

    devices: int
    online: int
    skipped: list[SkipCount]


class RetryChoice(Shape):
    """Which failed executions are tried again.

    Without `states`: those that ended as error or timed_out, and unknown ones if the call may be repeated.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"states": ["error"]}]})
    states: Annotated[list[ExecutionState], Field(min_length=1, max_length=3)] | None = None


class JobExecution(Shape):
    """What happened on one device. `text` is its answer, or a reason; `since` when it got its state, or null."""

    device: str
    state: ExecutionState
    attempts: int
    retries: int
    text: str
    since: Time | None
