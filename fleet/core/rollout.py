"""How a job goes through its devices: a few first, at a rate, inside a window, and not further once it goes wrong.

Pure decisions. `step` looks at what is known now and says what to do next; whoever calls it does that and asks again.
The window bounds the harm, a rate alone does not: at 1,000 devices a second and ten seconds until a silence is noticed,
10,000 devices were asked before the first failure is known. With a window, at most `window + halt_sample` devices are
touched before a job halts in which every device fails.
"""

from dataclasses import dataclass
from typing import Final, Literal

from fleet.wire.job_states import ExecutionState

RECENT: Final = 200
"""Ended executions over which failures are counted; older ones fade."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Some of the devices, with those of all earlier stages: a share, a number, or those that a query means.

    Exactly one of `share`, `count` and `query` is set.
    """

    share: float = 0.0
    count: int = 0
    query: str = ""
    success: float = 0.95
    """Least share of successes among its ended executions with which the next stage begins."""
    sample: int = 20
    """Ended executions with which it is judged, though others still wait. A smaller stage is judged at its end."""
    soak_ms: int = 0
    """How long it is watched after that."""
    approve: bool = False
    """Whether a person must begin the next stage."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How a job goes through its devices. The last stage has all of them."""

    stages: tuple[Stage, ...] = (Stage(share=1.0),)
    rate: float = 10.0
    """Devices a second."""
    window: int = 50
    """Executions under way at a time."""
    halt_share: float = 0.1
    """The job halts when a larger share of its recent executions failed."""
    halt_sample: int = 20
    """Ended executions without which it does not halt for that."""
    within_ms: int = 60_000
    """Time-out: how long a device's call may wait for the owner of its shard."""
    retries: int = 0
    retry_ms: int = 60_000
    """Pause before the first retry; each further one is twice as long."""
    repeatable: bool = False
    """Whether a call may be made again though it may have been done."""
    idle: bool = True
    """Whether devices in a session wait until it is over."""
    quiet: str = ""
    """Hours in which a device is left alone, in its own time zone, such as `22:00-07:00`."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Newest ended executions: counts that are halved whenever there are `RECENT`, so that old ones fade."""

    ended: int = 0
    failed: int = 0

    def add(self, ended: int, failed: int) -> "Recent":
        """Return the counts with some more."""
        ended, failed = self.ended + ended, self.failed + failed
        while ended >= RECENT:
            ended, failed = ended // 2, failed // 2
        return Recent(ended, failed)


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What is known of a job now."""

    stage: int
    """Number of the stage, from 0."""
    fresh: int
    """Devices of the reached stages that nobody has looked at yet; a lower bound that is 0 only if there are none."""
    due: int
    """Waiting devices whose time has come; such a bound, too."""
    waiting: int
    """All waiting devices, due ones among them."""
    in_flight: int
    ok: int
    """Successes since the stage began."""
    failed: int
    """Failures since the stage began."""
    recent: Recent
    allowance: int
    """Devices that the rate allows now."""
    settled_ms: int | None = None
    """When the stage had been judged."""
    approved: int = 0
    """Stages that a person has let pass, judged or not."""
    growing: bool = False
    """Whether devices may still join."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Hand over so many devices at most."""

    most: int


@dataclass(frozen=True, slots=True)
class Advance:
    """Begin the next stage."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing now.

    `settled`: the stage is judged from now on, if it was not before.
    """

    reason: Literal["rate", "window", "answers", "devices", "soak", "approval", "members"]
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop, and tell why: `ended` executions, `failed` of them failures, more than `bound` of them."""

    ended: int
    failed: int
    bound: float

    @property
    def reason(self) -> str:
        """The figures, for people."""
        return f"{self.failed} of {self.ended} failed, more than {self.bound:.3g} of them"


@dataclass(frozen=True, slots=True)
class Done:
    """Every device has its outcome."""


Decision = Feed | Advance | Wait | Halt | Done


def step(policy: Policy, progress: JobProgress, now_ms: int) -> Decision:
    """Return what to do next with a running job."""
    halt = _too_many_failures(policy, progress)
    if halt is not None:
        return halt
    last = progress.stage >= len(policy.stages) - 1
    if not last:
        decision = _leave(policy.stages[progress.stage], progress, now_ms)
        if decision is not None:
            return decision
    ready = progress.fresh + progress.due
    if not ready:
        if progress.in_flight:
            return Wait("answers")
        if progress.waiting:
            return Wait("devices")
        return Wait("members") if progress.growing or not last else Done()
    room = policy.window - progress.in_flight
    if room <= 0:
        return Wait("window")
    most = min(room, progress.allowance, ready)
    return Feed(most) if most > 0 else Wait("rate")


def _too_many_failures(policy: Policy, progress: JobProgress) -> Halt | None:
    ended, failed = progress.recent.ended, progress.recent.failed
    if ended >= policy.halt_sample and failed > policy.halt_share * ended:
        return Halt(ended, failed, policy.halt_share)
    return None


def _leave(stage: Stage, progress: JobProgress, now_ms: int) -> Decision | None:
    """Return what leads out of a stage; None while its devices are to be handed over."""
    if progress.approved > progress.stage:
        return Advance()
    ended = progress.ok + progress.failed
    settled = progress.settled_ms
    if settled is None:
        exhausted = not progress.due and not progress.waiting
        if progress.fresh or not (exhausted or ended >= stage.sample):
            return None
        if progress.in_flight:
            # No stragglers now: failures are known later than successes, and with ever new ones there would be no
            # moment at which all are known.
            return Wait("answers")
        settled = now_ms
    if ended and progress.ok < stage.success * ended:
        return Halt(ended, progress.failed, round(1 - stage.success, 6))
    if now_ms >= settled + stage.soak_ms and not stage.approve:
        return Advance()
    if progress.settled_ms is not None and progress.fresh + progress.due:
        return None
    return Wait("soak" if now_ms < settled + stage.soak_ms else "approval", settled=True)


def retry_pause(policy: Policy, state: ExecutionState, retries: int) -> int | None:
    """Return the ms after which an execution that failed is tried again; None if it is not.

    Args:
        policy: Of the job.
        state: How it ended. What was never sent may be tried again; what is unknown, only if it may be repeated.
        retries: How often it was tried again before.
    """
    again = state == "timed_out" or (state == "unknown" and policy.repeatable)
    return policy.retry_ms * 2**retries if again and retries < policy.retries else None


class Pace:
    """Devices that a rate allows; what was not used in a second is lost.

    Args:
        rate: Devices a second.
        now: In seconds, of any clock that only goes forward.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._tokens, self._at = 0.0, now

    def allowance(self, now: float) -> int:
        """Return how many devices may be handed over now."""
        self._tokens = min(max(1.0, self.rate), self._tokens + self.rate * max(0.0, now - self._at))
        self._at = now
        return int(self._tokens)

    def take(self, count: int) -> None:
        """Use some of the allowance."""
        self._tokens -= count
