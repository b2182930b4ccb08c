"""What an examination finds."""

from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

Verdict = Literal["ok", "skipped", "warning", "problem", "wrong"]
"""`wrong` is a setting that cannot be used; `skipped` what does not apply here or could not be asked."""

_EXIT: Final[dict[Verdict, int]] = {"ok": 0, "skipped": 0, "warning": 0, "problem": 1, "wrong": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result.

    `check` is its id, `thing.aspect`, which the documentation explains (docs/doctor.md); `told` what was found,
    `advice` what to do about it.
    """

    check: str
    verdict: Verdict
    told: str
    advice: str = ""


Findings = AsyncGenerator[Finding, None]


def ok(check: str, told: str) -> Finding:
    return Finding(check, "ok", told)


def skipped(check: str, told: str, advice: str = "") -> Finding:
    return Finding(check, "skipped", told, advice)


def warning(check: str, told: str, advice: str) -> Finding:
    return Finding(check, "warning", told, advice)


def problem(check: str, told: str, advice: str) -> Finding:
    return Finding(check, "problem", told, advice)


def wrong(check: str, told: str, advice: str) -> Finding:
    return Finding(check, "wrong", told, advice)


def judge(check: str, good: bool, told: tuple[str, str], advice: str, bad: Callable[..., Finding] = problem) -> Finding:
    """Return a finding by whether something holds; `told` is what to say if so, and if not."""
    return ok(check, told[0]) if good else bad(check, told[1], advice)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 0 when nothing is wrong, 1 for problems, 2 for settings that cannot be used."""
    return max((_EXIT[finding.verdict] for finding in findings), default=0)
