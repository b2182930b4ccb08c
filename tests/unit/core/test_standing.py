import pytest

from fleet.core.standing import Policy, Verdict, judge


@pytest.mark.parametrize(
    ("policy", "bound", "known", "provable", "verdict"),
    [
        ("open", False, "", False, "admitted"),
        ("code", False, "", False, "asked"),
        ("code", True, "mine", False, "admitted"),
        ("code", True, "", False, "admitted"),
        ("code", True, "another", False, "asked"),
        ("closed", False, "", False, "refused"),
        ("closed", False, "", True, "asked"),
        ("closed", True, "mine", False, "admitted"),
        ("closed", True, "another", False, "refused"),
        ("closed", True, "another", True, "asked"),
    ],
)
def test_the_policy_decides(policy: Policy, bound: bool, known: str, provable: bool, verdict: Verdict) -> None:
    assert judge(policy, bound=bound, known=known, client="mine", provable=provable) == verdict
