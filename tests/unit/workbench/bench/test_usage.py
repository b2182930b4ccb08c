import os

from fleet.workbench.bench.usage import Usage


def test_usage_of_this_process_grows_with_its_work() -> None:
    before = Usage.of([os.getpid()])
    sum(range(3_000_000))
    after = Usage.of([os.getpid()])
    assert after.cpu > before.cpu
    assert after.memory > 1_000_000


def test_usage_of_several_processes_is_their_sum() -> None:
    one, two = Usage.of([os.getpid()]), Usage.of([os.getpid(), os.getpid()])
    assert two.memory >= 1.9 * one.memory
