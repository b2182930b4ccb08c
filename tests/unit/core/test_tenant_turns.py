from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.tenant_turns import TenantTurns


@dataclass(frozen=True)
class Work:
    tenant: int
    id: int


def test_a_tenant_with_much_work_comes_as_often_as_one_with_little() -> None:
    works = [*(Work(1, number) for number in range(1, 6)), Work(2, 9)]
    assert [one.id for one in TenantTurns().round(works, lambda: 0.0)] == [1, 9, 2, 3, 4, 5]


def test_a_round_whose_time_is_over_gives_each_tenant_one_turn_and_the_next_one_goes_on_there() -> None:
    works = [*(Work(1, number) for number in (1, 2, 3)), *(Work(2, number) for number in (7, 8))]
    turns = TenantTurns(0.0)
    rounds = [[one.id for one in turns.round(works, lambda: 0.0)] for _ in range(4)]
    assert rounds == [[1, 7], [2, 8], [3, 7], [1, 8]]
    assert turns.cut
    assert [one.id for one in turns.round(works[2:4], lambda: 0.0)] == [3, 7]
    assert not turns.cut


@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0, 1)), min_size=1, max_size=40))
def test_no_work_waits_for_more_rounds_than_its_tenant_has_works(made: list[tuple[int, float]]) -> None:
    works = [Work(tenant, number) for number, (tenant, _) in enumerate(made, 1)]
    seconds = {number: cost for number, (_, cost) in enumerate(made, 1)}
    own = max(sum(one.tenant == tenant for one in works) for tenant in {one.tenant for one in works})
    turns, done, clock = TenantTurns(), set[Work](), [0.0]
    for _ in range(own):
        served, begun = set[int](), clock[0]
        for one in turns.round(works, lambda: clock[0]):
            assert one.tenant not in served or clock[0] - begun < turns.seconds
            served.add(one.tenant)
            done.add(one)
            clock[0] += seconds[one.id]
        assert served == {one.tenant for one in works}
    assert done == set(works)
