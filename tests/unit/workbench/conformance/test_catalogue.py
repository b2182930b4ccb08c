from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext


def test_a_group_collects_its_checks_with_what_they_need() -> None:
    group = Group("X", "Things")

    @group.check("X12", "things hold", profiles="P1 P5", steered=True, alone=True, seconds=7)
    async def holds(_: CheckContext) -> str:
        return "they do"

    @group.check("X13", "others do too")
    async def others(_: CheckContext) -> str:
        return "they do"

    first, second = group.checks
    assert (first.letter, first.number, first.run) == ("X", 12, holds)
    assert (first.steered, first.alone, first.seconds) == (True, True, 7)
    assert [first.applies(name) for name in ("P1", "P5", "P8")] == [True, True, False]
    assert second.applies("P8")
    assert not second.steered
