"""The terms of each kind of job."""

from fleet.core.job_kinds.directory import TERMS, terms_of


def test_stored_jobs_have_the_terms_of_their_kind() -> None:
    body = {"tool": "self.a", "arguments": {"x": 1}, "collect": "system"}
    found = {kind: terms_of(kind, body) for kind in ("tool", "reboot", "collect")}  # type: ignore[arg-type]
    assert [found["tool"].tool, dict(found["tool"].arguments)] == ["self.a", {"x": 1}]
    assert [found["reboot"].tool, found["collect"].attribute] == ["self.reboot", "system"]
    assert set(found) <= set(TERMS)
