from fleet.core.query.conditions import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Comparison,
    FreeText,
    Negation,
    comparisons_of,
    names_field,
)

GROUP, OTHER = Comparison("group", "=", "lab"), Comparison("group", "!=", "hall")
ONLINE = Comparison("online", "=", True)


def test_the_comparisons_on_a_field_are_found_wherever_they_stand_also_in_a_negation() -> None:
    condition = AllOf((ONLINE, GROUP, FreeText("group"), AnyOf((Negation(AllOf((OTHER, ONLINE))), FreeText("x")))))
    assert list(comparisons_of(condition, "group")) == [GROUP, OTHER]
    assert list(comparisons_of(condition, "online")) == [ONLINE, ONLINE]


def test_a_field_is_named_by_a_comparison_only() -> None:
    assert names_field(Negation(GROUP), "group") and not names_field(Negation(ONLINE), "group")
    assert not names_field(FreeText("group"), "group") and not names_field(EVERYTHING, "group")
