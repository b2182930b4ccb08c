from fleet.workbench.bench.figures import Percentiles, Spread


def test_spread_is_the_middle_and_the_ends() -> None:
    assert Spread.of([3, 1, 2]) == Spread(2, 1, 3)


def test_percentiles_of_a_hundred_numbers() -> None:
    assert Percentiles.of([float(number) for number in range(100, 0, -1)]) == Percentiles(51, 100, 100)
    assert Percentiles.of([1.0] * 990 + [9.0] * 10).p99 == 9.0
    assert Percentiles.of([1.0] * 995 + [9.0] * 5).p99 == 1.0
    assert Percentiles.of([]) == Percentiles(0, 0, 0)
