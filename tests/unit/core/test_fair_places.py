from fleet.core.fair_places import FairPlaces


def test_the_site_with_the_most_loses_what_it_used_longest_ago() -> None:
    places = FairPlaces[str](4)
    for name in ("a1", "b1", "b2", "b3"):
        assert places.take(name, name[0]) is None
    assert places.take("b1", "b") is None
    assert [places.take(name, name[0]) for name in ("c1", "d1", "b4", "b5")] == ["b2", "b3", "b1", "b4"]
    assert [name for name in ("a1", "c1", "d1", "b5") if name in places] == ["a1", "c1", "d1", "b5"]
    assert len(places) == 4


def test_a_site_takes_nothing_from_one_that_has_as_much() -> None:
    places = FairPlaces[str](4)
    assert [places.take(name, name[0]) for name in ("a1", "a2", "b1", "b2", "b3", "b4")] == [*[None] * 4, "b1", "b2"]


def test_where_each_site_has_one_place_the_oldest_goes() -> None:
    places = FairPlaces[str](2)
    assert [places.take(name, name) for name in ("a", "b", "a", "c", "d")] == [None, None, None, "b", "a"]


def test_a_place_that_was_given_back_is_free() -> None:
    places = FairPlaces[str](1)
    places.take("a", "site")
    places.leave("a")
    places.leave("a")
    assert places.take("b", "site") is None
    assert (len(places), "a" in places) == (1, False)
