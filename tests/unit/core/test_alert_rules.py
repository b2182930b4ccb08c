"""The rules for alerts and their thresholds."""

from fleet.core.alert_rules import MEANINGS, THRESHOLDS, misfit, terms_of
from fleet.wire.alert_names import ALERT_RULES


def test_every_rule_has_a_meaning_that_names_its_thresholds_and_defaults_within_their_bounds() -> None:
    for rule in ALERT_RULES:
        assert all(f"`{name}`" in MEANINGS[rule] for name in THRESHOLDS[rule]), rule
        assert misfit(rule, terms_of(rule, {}).thresholds) == "", rule


def test_what_a_tenant_changed_counts_and_names_of_other_versions_do_not() -> None:
    terms = terms_of("flapping", {"minutes": 3, "hours": 9}, enabled=False)
    assert (terms.enabled, terms.thresholds) == (False, {"connections": 6, "minutes": 3})


def test_wrong_thresholds_are_named() -> None:
    assert misfit("silent", {"minutes": 1}) == "the rule silent has no minutes; it has days"
    assert misfit("tools", {"share": 0.5, "sample": 0}) == "sample is from 1 to 100000"
