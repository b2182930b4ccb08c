import pytest

from fleet.roles.control.problems import Problem
from fleet.roles.control.wrong_codes import WRONG_CODES, WRONG_CODES_OF_ALL, WrongCodes
from tests.support.virtual_time import elapse

DAY = 24 * 3600


def guess(codes: WrongCodes, tenant: int) -> Problem | None:
    """Enter a wrong code; return the refusal, or None if the code was looked up."""
    try:
        codes.begin(tenant)
    except Problem as problem:
        return problem
    codes.was_wrong()
    return None


def spend_all(codes: WrongCodes) -> None:
    """Let other tenants enter as many wrong codes as all may."""
    for tenant in range(WRONG_CODES_OF_ALL.burst):
        guess(codes, 100 + tenant)


async def test_a_tenant_guesses_ten_times_and_then_once_a_minute() -> None:
    codes = WrongCodes()
    assert [guess(codes, 1) is None for _ in range(12)] == [True] * 10 + [False] * 2
    refused = guess(codes, 1)
    assert refused is not None and refused.status_code == 429
    assert dict(refused.headers or {})["Retry-After"] in ("60", "61"), "in whole seconds, rounded up"
    await elapse(DAY)
    tried = 0
    for _ in range(DAY // 600):
        tried += sum(guess(codes, 1) is None for _ in range(20))
        await elapse(600)
    assert tried == DAY // 60


async def test_codes_of_requests_at_once_count_before_they_are_looked_up() -> None:
    codes = WrongCodes()
    for _ in range(WRONG_CODES.burst):
        codes.begin(1)
    with pytest.raises(Problem):
        codes.begin(1)


async def test_right_codes_cost_nothing() -> None:
    codes = WrongCodes()
    for _ in range(100):
        codes.begin(1)
        codes.was_right(1)
    assert guess(codes, 1) is None


async def test_who_has_guessed_waits_for_all_and_who_has_not_does_not() -> None:
    codes = WrongCodes()
    assert guess(codes, 1) is None
    spend_all(codes)
    refused = guess(codes, 1)
    assert refused is not None and (refused.status_code, refused.headers) == (429, {"Retry-After": "1"})
    codes.begin(2)
    codes.was_right(2)
    await elapse(60)
    assert guess(codes, 1) is None
