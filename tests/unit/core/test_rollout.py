"""Policies of jobs: a simulated fleet goes through them."""

import random
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as some

from fleet.core.rollout import (
    RECENT,
    Advance,
    Done,
    Feed,
    Halt,
    JobProgress,
    Pace,
    Policy,
    Recent,
    Stage,
    Wait,
    retry_pause,
    step,
)


@dataclass
class Fleet:
    """Devices with given outcomes: True, False, or None for one that never connects."""

    policy: Policy
    outcomes: list[bool | None]
    dice: random.Random
    now: int = 0
    stage: int = 0
    fed: int = 0
    flying: list[bool] = field(default_factory=list)
    waiting: int = 0
    ok: int = 0
    failed: int = 0
    recent: Recent = field(default_factory=Recent)
    settled: int | None = None
    most_flying: int = 0
    stage_counts: list[tuple[int, int]] = field(default_factory=list)

    def reached(self) -> int:
        stage = self.policy.stages[self.stage]
        return stage.count or -int(-stage.share * len(self.outcomes) // 1)

    def progress(self, **more: int) -> JobProgress:
        fresh = max(0, min(self.reached(), len(self.outcomes)) - self.fed)
        counts = (self.ok, self.failed, self.recent)
        return JobProgress(self.stage, fresh, 0, self.waiting, len(self.flying), *counts, 1_000, self.settled, **more)

    def run(self) -> Halt | Done | Wait:
        """Go on until the job is over, or only waits for devices that never come."""
        while True:
            match step(self.policy, self.progress(), self.now):
                case Feed(most):
                    assert most > 0
                    self.feed(most)
                case Advance():
                    self.stage_counts.append((self.ok, self.failed))
                    self.stage, self.ok, self.failed, self.settled = self.stage + 1, 0, 0, None
                case Wait("devices") as wait:
                    return wait
                case Wait(_, settled):
                    self.settled = self.now if settled and self.settled is None else self.settled
                    self.now += 1_000
                    self.land()
                case Halt() | Done() as end:
                    return end

    def feed(self, most: int) -> None:
        for _ in range(most):
            if self.fed == len(self.outcomes):
                return
            outcome = self.outcomes[self.fed]
            self.fed += 1
            if outcome is None:
                self.waiting += 1
            else:
                self.flying.append(outcome)
        self.most_flying = max(self.most_flying, len(self.flying))
        if self.dice.random() < 0.5:
            self.land()

    def land(self) -> None:
        count = self.dice.randrange(len(self.flying) + 1) if len(self.flying) > 1 else len(self.flying)
        self.dice.shuffle(self.flying)
        landed, self.flying = self.flying[:count], self.flying[count:]
        self.ok += sum(landed)
        self.failed += len(landed) - sum(landed)
        self.recent = self.recent.add(len(landed), len(landed) - sum(landed))


SHARES = some.sampled_from([0.01, 0.05, 0.3])
POLICIES = some.builds(
    Policy,
    stages=some.lists(
        some.builds(Stage, share=SHARES, sample=some.integers(1, 30), soak_ms=some.sampled_from([0, 5_000])), max_size=2
    ).map(lambda stages: (*sorted(stages, key=lambda one: one.share), Stage(share=1.0))),
    window=some.integers(1, 60),
    halt_share=some.sampled_from([0.0, 0.05, 0.3]),
    halt_sample=some.integers(1, 40),
)
FLEETS = some.builds(
    Fleet,
    POLICIES,
    some.lists(some.sampled_from([True, True, True, True, True, True, True, False, None]), max_size=300),
    some.randoms(use_true_random=False),
)


@given(FLEETS)
def test_a_job_ends_and_never_has_more_devices_under_way_than_its_window(fleet: Fleet) -> None:
    end = fleet.run()
    assert fleet.most_flying <= fleet.policy.window
    for (ok, failed), stage in zip(fleet.stage_counts, fleet.policy.stages, strict=False):
        assert ok >= stage.success * (ok + failed), "no stage was left with too few successes"
    if isinstance(end, Done):
        assert fleet.fed == len(fleet.outcomes) and not fleet.flying and not fleet.waiting
    if isinstance(end, Halt):
        assert end.failed > end.bound * end.ended - 1e-9


@given(POLICIES, some.randoms(use_true_random=False))
def test_when_every_device_fails_the_job_touches_no_more_than_window_and_sample(
    policy: Policy, dice: random.Random
) -> None:
    fleet = Fleet(policy, [False] * 1_000, dice)
    assert isinstance(fleet.run(), Halt)
    assert fleet.fed <= policy.window + policy.halt_sample


@given(some.lists(some.tuples(some.integers(0, 600), some.integers(0, 600)), max_size=50))
def test_recent_failures_fade_and_never_exceed_what_ended(batches: list[tuple[int, int]]) -> None:
    recent = Recent()
    for ended, failed in batches:
        recent = recent.add(max(ended, failed), failed)
        assert 0 <= recent.failed <= recent.ended < RECENT
    for _ in range(20):
        recent = recent.add(RECENT // 2, 0)
    assert recent.failed == 0


def progress(**values: object) -> JobProgress:
    whole = {"stage": 0, "fresh": 0, "due": 0, "waiting": 0, "in_flight": 0, "ok": 0, "failed": 0, "allowance": 5}
    return JobProgress(**{**whole, "recent": Recent(), **values})  # type: ignore[arg-type]


CANARY = Policy(stages=(Stage(count=20, sample=10, soak_ms=60_000, approve=True), Stage(share=1.0)))


def test_a_canary_is_watched_and_then_waits_for_a_person() -> None:
    for about, state, now, expected in (
        (
            "stragglers are not fed while answers are missing",
            progress(ok=12, due=3, waiting=3, in_flight=2),
            0,
            Wait("answers"),
        ),
        ("offline devices do not hold up a stage with its sample", progress(ok=12, waiting=3), 0, Wait("soak", True)),
        ("without its sample a stage waits for them", progress(ok=8, waiting=3), 0, Wait("devices")),
        ("stragglers are fed during the soak", progress(ok=12, waiting=3, due=2, settled_ms=0), 10, Feed(2)),
        ("the soak ends", progress(ok=12, settled_ms=0), 60_000, Wait("approval", True)),
        ("a person may end it at any time", progress(ok=2, fresh=3, approved=1), 0, Advance()),
        ("too few successes", progress(ok=12, failed=1), 0, Halt(13, 1, 0.05)),
        ("what fails in the soak counts", progress(ok=12, failed=1, settled_ms=0), 10, Halt(13, 1, 0.05)),
        ("an empty stage is left", progress(settled_ms=0, approved=1), 0, Advance()),
    ):
        assert step(CANARY, state, now) == expected, about


def test_a_stage_that_needs_nobodys_approval_is_left_when_its_soak_ends() -> None:
    policy = Policy(stages=(Stage(count=20, sample=10, soak_ms=60_000), Stage(share=1.0)))
    steps = [step(policy, progress(ok=12, settled_ms=5), now) for now in (60_004, 60_005)]
    assert steps == [Wait("soak", True), Advance()]


def test_the_last_stage_ends_when_every_device_has_its_outcome() -> None:
    for about, state, expected in (
        ("rate", progress(fresh=3, allowance=0), Wait("rate")),
        ("window", progress(fresh=3, in_flight=50), Wait("window")),
        ("answers", progress(in_flight=1), Wait("answers")),
        ("offline devices", progress(waiting=1), Wait("devices")),
        ("new members may come", progress(growing=True), Wait("members")),
        ("all done, failures too", progress(ok=1, failed=1), Done()),
        ("halts for recent failures", progress(recent=Recent(20, 3), fresh=1), Halt(20, 3, 0.1)),
        ("one failure is not enough", progress(recent=Recent(19, 19), fresh=1), Feed(1)),
    ):
        assert step(Policy(), state, 0) == expected, about


def test_a_policy_that_says_nothing_disturbs_no_conversation_and_makes_no_call_twice() -> None:
    usual = Policy()
    assert usual.idle and (usual.retries, usual.repeatable) == (0, False)


def test_only_what_was_not_sent_or_may_be_repeated_is_tried_again() -> None:
    policy, repeatable = Policy(retries=2, retry_ms=10), Policy(retries=2, retry_ms=10, repeatable=True)
    assert [retry_pause(policy, "timed_out", tried) for tried in range(3)] == [10, 20, None]
    assert [retry_pause(one, "unknown", 0) for one in (policy, repeatable)] == [None, 10]
    assert retry_pause(repeatable, "error", 0) is None and retry_pause(Policy(), "timed_out", 0) is None


@given(some.floats(0.1, 1_000), some.lists(some.floats(0.01, 3), min_size=1, max_size=60))
def test_a_pace_keeps_its_rate(rate: float, pauses: list[float]) -> None:
    pace, now, taken, counts = Pace(rate, 0.0), 0.0, 0, Counter[str]()
    for pause in pauses:
        now += pause
        count = pace.allowance(now)
        pace.take(count)
        taken += count
        counts["most"] = max(counts["most"], count)
    assert taken <= rate * now + 1e-6 and counts["most"] <= max(1, rate)
