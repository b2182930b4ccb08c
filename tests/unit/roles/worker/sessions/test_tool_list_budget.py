from collections import Counter

from fleet.ground.metrics.broker import LISTS
from fleet.roles.worker.sessions.known_lists import KnownList, KnownLists
from fleet.roles.worker.sessions.tool_list_budget import LIST_TOO_LONG, MOST_TOOLS, PAGE_TOO_LONG, ListBudget
from fleet.wire.mcp import LARGEST_LIST, LARGEST_PAGE, ToolSpec


def tools(first: int, count: int, size: int = 1000) -> list[ToolSpec]:
    return [ToolSpec(name=f"t{first + at}", description="x" * size) for at in range(count)]


def test_the_list_that_was_begun_first_goes_when_all_take_too_much() -> None:
    counts: Counter[str] = Counter()
    budget = ListBudget(counts, limit=30_000)
    with budget.begin() as first, budget.begin() as second, budget.begin() as third:
        for growing in (first, second, third):
            budget.add(growing, tools(0, 7))
            budget.add(growing, tools(7, 3))
        assert (first.refused, second.refused, third.refused) == (True, False, False)
        assert first.document() == b"[]"
        assert budget.used == second.size + third.size <= budget.limit
        budget.add(first, tools(10, 7))
        assert first.document() == b"[]"
    assert budget.used == 0
    assert counts == {"tools: too many lists": 1}


def test_a_list_that_is_at_its_end_leaves_its_room_to_others() -> None:
    budget = ListBudget(Counter(), limit=15_000)
    for _ in range(100):
        with budget.begin() as growing:
            assert budget.add(growing, tools(0, 7)) == ""
            assert budget.add(growing, tools(7, 3)) == ""
            assert not growing.refused
    assert budget.used == 0


def test_a_list_is_bounded_in_bytes_and_in_tools() -> None:
    budget = ListBudget(Counter())
    with budget.begin() as large, budget.begin() as many:
        ends = [(budget.add(large, tools(n * 7, 7)), budget.add(many, tools(n * 7, 7, size=0))) for n in range(40)]
        assert ends[0] == ("", "")
        assert ends[-1] == (LIST_TOO_LONG, LIST_TOO_LONG)
        assert LARGEST_LIST - 2000 < len(large.document()) <= LARGEST_LIST + len(large)
        assert len(many) == MOST_TOOLS


def known_list(*pages: bytes) -> KnownLists:
    """Return lists of which one has these pages."""
    known = KnownLists()
    with ListBudget(Counter()).begin() as growing:
        for page in pages:
            growing.skip(page)
        known.put(growing.digests, KnownList("[]", 0))
    return known


def test_a_known_page_of_a_list_that_was_dropped_before_it_takes_no_room() -> None:
    page = b"x" * 1_000
    known = known_list(page)
    budget = ListBudget(Counter(), limit=5_000)
    with budget.begin(known=known) as silent, budget.begin() as large:
        budget.add(large, tools(0, 7))
        assert silent.refused
        assert not budget.skip(silent, page)
        assert silent.skipped == []
    assert budget.used == 0


def test_the_known_pages_of_one_list_take_as_much_room_as_a_whole_list_at_most() -> None:
    pages = [b"%d" % at + b" " * 60_000 for at in range(32)]
    budget = ListBudget(Counter())
    with budget.begin(known=known_list(*pages)) as growing:
        assert [budget.skip(growing, page) for page in pages] == [True] + [False] * 31
        assert budget.used == growing.size <= LARGEST_LIST
    assert budget.used == 0


def test_of_a_page_that_firmware_would_not_send_the_beginning_is_kept() -> None:
    budget = ListBudget(Counter())
    with budget.begin() as growing:
        assert budget.add(growing, tools(0, 9)) == PAGE_TOO_LONG
        assert len(growing) == 7


def test_a_tool_that_comes_twice_counts_once() -> None:
    budget = ListBudget(Counter())
    with budget.begin() as growing:
        for _ in range(100):
            assert budget.add(growing, tools(0, 5)) == ""
        assert len(growing) == 5
        assert budget.used == growing.size < 7000


def test_a_page_may_be_as_long_as_firmware_makes_it_and_no_byte_longer() -> None:
    shortest = len(tools(0, 1, size=1)[0].model_dump_json(exclude_defaults=True)) - 1
    for size, fault in ((LARGEST_PAGE - shortest, ""), (LARGEST_PAGE - shortest + 1, PAGE_TOO_LONG)):
        with ListBudget(Counter()).begin() as growing:
            assert growing.add(tools(0, 1, size)) == fault
            assert len(growing) == (not fault)


def test_a_list_that_is_too_long_counts_under_a_label_of_the_metric() -> None:
    assert {LIST_TOO_LONG, PAGE_TOO_LONG} < set(LISTS)
