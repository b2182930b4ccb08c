"""The findings of an examination."""

from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

Verdict = Literal["ok", "skipped", "warning", "problem", "wrong"]
"""`wrong`: a setting cannot be used; `skipped`: the check does not apply here, or could not be made."""

_EXIT: Final[dict[Verdict, int]] = {"ok": 0, "skipped": 0, "warning": 0, "problem": 1, "wrong": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result.

    `check` is its id, `part.aspect` (docs/doctor.md); `message` is what was found, `advice` is what to do. `case` says
    for programs which of the results of a check it is; only findings about a device have one.
    """

    check: str
    verdict: Verdict
    message: str
    advice: str = ""
    case: str = ""


Findings = AsyncGenerator[Finding, None]


def ok(check: str, message: str, *, case: str = "") -> Finding:
    return Finding(check, "ok", message, case=case)


def skipped(check: str, message: str, advice: str = "", *, case: str = "") -> Finding:
    return Finding(check, "skipped", message, advice, case)


def warning(check: str, message: str, advice: str, *, case: str = "") -> Finding:
    return Finding(check, "warning", message, advice, case)


def problem(check: str, message: str, advice: str, *, case: str = "") -> Finding:
    return Finding(check, "problem", message, advice, case)


def wrong(check: str, message: str, advice: str) -> Finding:
    return Finding(check, "wrong", message, advice)


def judge(
    check: str, good: bool, message: tuple[str, str], advice: str, bad: Callable[..., Finding] = problem
) -> Finding:
    """Return a finding; `message` has the texts for a good and for a bad result, `advice` is for a bad one."""
    return ok(check, message[0]) if good else bad(check, message[1], advice)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 0 if there is no problem, 1 for problems, 2 for settings that cannot be used."""
    return max((_EXIT[finding.verdict] for finding in findings), default=0)
