from fleet.core.shared_budget import BudgetShare, SharedBudget


def test_all_shares_together_take_no_more_than_the_budget() -> None:
    budget = SharedBudget(100)
    one, two = BudgetShare(budget), BudgetShare(budget)
    assert one.take(60)
    assert not two.take(41)
    assert (two.taken, budget.used) == (0, 60)
    assert two.take(40)
    one.give_back(30)
    assert two.take(30)
    assert budget.used == 100


def test_a_share_takes_no_more_than_its_most() -> None:
    share = BudgetShare(SharedBudget(100), most=50)
    assert share.take(50)
    assert not share.take(1)
    assert share.take(7, always=True)
    assert share.taken == 57


def test_what_is_always_taken_counts_though_the_budget_is_used_up() -> None:
    budget = SharedBudget(100)
    one, two = BudgetShare(budget), BudgetShare(budget)
    assert one.take(100)
    assert two.take(5, always=True)
    assert budget.used == 105
    two.give_back(5)
    assert budget.used == 100


def test_a_change_counts_in_place_of_what_was_taken() -> None:
    budget = SharedBudget(100)
    share = BudgetShare(budget)
    assert share.change(90)
    assert not share.change(101)
    assert budget.used == 90
    assert share.change(100)
    assert share.change(3)
    assert budget.used == share.taken == 3


def test_a_closed_share_has_nothing_and_takes_nothing() -> None:
    budget = SharedBudget(100)
    share = BudgetShare(budget)
    assert share.take(10)
    share.close()
    share.close()
    assert budget.used == 0
    assert not share.take(1)
    assert not share.take(1, always=True)
    share.give_back(10)
    assert budget.used == 0
