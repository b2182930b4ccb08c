"""The terms of each kind of job."""

from fleet.core.job_kinds.directory import TERMS, terms_of
from fleet.core.query.conditions import Comparison, Negation


def test_stored_jobs_have_the_terms_of_their_kind() -> None:
    body = {"tool": "self.a", "arguments": {"x": 1}, "collect": "system", "key": "k2"}
    found = {kind: terms_of(kind, body) for kind in ("tool", "reboot", "collect", "rotate_credentials")}  # type: ignore[arg-type]
    assert [found["tool"].tool, dict(found["tool"].arguments)] == ["self.a", {"x": 1}]
    assert [found["reboot"].tool, found["collect"].attribute] == ["self.reboot", "system"]
    assert found["rotate_credentials"].tool == "self.reboot"
    assert [str(one.value) for one in found["rotate_credentials"].skips.values()] == ["k2"]  # type: ignore[union-attr]
    assert set(found) <= set(TERMS)


def test_assets_are_given_to_devices_of_their_board_only() -> None:
    terms = terms_of("assets", {"assets": {"board": "bread"}})
    assert terms.skips == {"it is another board": Negation(Comparison("board", "=", "bread"))}
