"""The states of jobs, and of their executions on single devices."""

from typing import Final, Literal, get_args

ExecutionState = Literal[
    "queued", "waiting", "sent", "ok", "error", "unknown", "timed_out", "expired", "skipped", "cancelled", "verifying"
]
"""Of one device in a job. `queued`: nobody has looked at it yet. `waiting`: it is offline, busy, or left alone by the
policy. `sent`: handed over to the owner of its shard, so it may have been published. `verifying`: the device was told,
and what it does next shows whether it was done. The others are final."""
EXECUTION_STATES: Final[tuple[ExecutionState, ...]] = get_args(ExecutionState)
"""Their order is kept in databases: add new ones at the end."""
OPEN_STATES: Final[tuple[ExecutionState, ...]] = ("queued", "waiting", "sent", "verifying")
UNDER_WAY: Final[tuple[ExecutionState, ...]] = ("sent", "verifying")
"""What the window of a job bounds."""
FAILURES: Final[frozenset[ExecutionState]] = frozenset({"error", "unknown", "timed_out"})
"""What counts as a failure: that nobody knows whether it was done, too."""

COMMAND: Final = "command"
"""Name of the jobs that are commands of one device (`/v1/devices/{mac}/commands`); others cannot have it."""

JobState = Literal["preparing", "running", "paused", "halted", "stopping", "done", "stopped", "scheduled"]
"""`scheduled`: it begins later. `preparing`: its devices are being written down. `halted`: it paused by itself.
`stopping`: what was not handed over is cancelled, and the rest gets its outcome."""
JobKind = Literal[
    "tool", "reboot", "collect", "announce", "shadow", "agent", "rotate_credentials", "firmware", "assets"
]
"""What a job does with a device (`fleet.core.job_kinds`)."""
Collected = Literal["status", "system"]
"""What the kind `collect` asks for."""
