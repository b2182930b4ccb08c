"""What is known of a job by its kind."""

from fleet.core.job_kinds.terms import LONGEST_ANSWER_MS, JobTerms


def test_the_answer_of_a_slow_tool_may_take_as_long_as_the_tool() -> None:
    assert JobTerms().answer_ms == JobTerms(tool="self.get_device_status").answer_ms == LONGEST_ANSWER_MS
    assert JobTerms(tool="self.upgrade_firmware").answer_ms == 300_000


def test_a_kind_without_terms_of_its_own_calls_nothing_and_skips_nobody() -> None:
    terms = JobTerms()
    assert (terms.tool, dict(terms.arguments), dict(terms.skips), terms.evidence) == ("", {}, {}, frozenset())
