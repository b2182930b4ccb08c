from fleet.roles.worker.sessions.known_lists import KnownList, KnownLists


def test_a_list_is_found_by_all_its_pages_and_begins_with_the_first_ones() -> None:
    lists, one = KnownLists(), KnownList("z:1", 2)
    lists.put(("a", "b"), one)
    lists.put(("a", "b"), KnownList("z:2", 3))
    assert [lists.begins(pages) for pages in (("a",), ("a", "b"), ("b",), ())] == [True, True, False, False]
    assert (lists.find(("a", "b")), lists.find(("a",))) == (one, None)


def test_lists_that_were_not_used_for_the_longest_time_give_way() -> None:
    lists = KnownLists(most=2, largest=100)
    for name in "abc":
        lists.put((name, "last"), KnownList("x" * 30, 1))
        lists.find(("a", "last"))
    assert [lists.begins((name,)) for name in "abc"] == [True, False, True]
    lists.put(("d",), KnownList("x" * 80, 1))
    assert [lists.begins((name,)) for name in "acd"] == [False, False, True]
    lists.put(("e",), KnownList("x" * 101, 1))
    assert not any(lists.begins((name,)) for name in "acde")
