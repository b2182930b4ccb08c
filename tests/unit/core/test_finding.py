"""The findings of an examination."""

from fleet.core.finding import Finding, exit_code, judge, problem, skipped, warning, wrong

TEXTS = ("it answers", "it does not answer")


def test_a_good_result_has_its_own_text_and_no_advice_and_a_bad_one_has_both() -> None:
    assert judge("redis.answer", True, TEXTS, "start it") == Finding("redis.answer", "ok", "it answers")
    found = [judge("redis.answer", False, TEXTS, "start it", bad) for bad in (problem, warning, wrong)]
    assert [one.verdict for one in found] == ["problem", "warning", "wrong"]
    assert {(one.message, one.advice) for one in found} == {("it does not answer", "start it")}
    assert judge("redis.answer", False, TEXTS, "start it") == found[0]


def test_the_worst_finding_decides_how_an_examination_ends() -> None:
    harmless = [skipped("a", ""), warning("b", "", "")]
    assert exit_code([]) == exit_code(harmless) == 0
    assert exit_code([*harmless, problem("c", "", "")]) == 1
    assert exit_code([wrong("d", "", ""), *harmless, problem("c", "", "")]) == 2
