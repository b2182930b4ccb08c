from collections import Counter

import pytest

from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.roles.worker.plugin_counts import KINDS, PREFIX, PluginCounts
from fleet.wire.identity import Credentials


class Worker:
    """What a worker counts, while it is the one that counts or not."""

    def __init__(self, *, counting: bool = True) -> None:
        self.counting = counting
        self.counts: Counter[str] = Counter()
        nowhere, nobody = MqttAddress("127.0.0.1", 1), Credentials("fleet-x", "", "")
        self.plugin = PluginCounts(nowhere, lambda: nobody, lambda: self.counting, self.counts)

    def receive(self, *figures: int, kind: str = "floods") -> None:
        for figure in figures:
            self.plugin.receive(f"{PREFIX}{kind}", b"%d" % figure)


def test_what_grew_is_counted() -> None:
    worker = Worker()
    for kind in KINDS:
        worker.receive(3, 3, 10, kind=kind)
    assert worker.counts == {f"broker: {kind}": 7 for kind in KINDS}


def test_what_was_refused_before_the_worker_came_is_not_counted() -> None:
    worker = Worker()
    worker.receive(1000)
    assert worker.counts == {}


def test_a_broker_that_began_anew_counts_from_0() -> None:
    worker = Worker()
    worker.receive(1000, 1001, 4, 6)
    assert worker.counts == {"broker: floods": 1 + 4 + 2}


def test_of_two_workers_the_sum_is_right_also_when_the_other_one_takes_over() -> None:
    one, two = Worker(), Worker(counting=False)
    for figure in (0, 5, 9):
        one.receive(figure)
        two.receive(figure)
    one.counting, two.counting = False, True
    for figure in (12, 20):
        one.receive(figure)
        two.receive(figure)
    assert (one.counts + two.counts) == {"broker: floods": 20}


@pytest.mark.parametrize("payload", [b"", b"-1", b"1e3", "²".encode(), b"9" * 21, b"\xff", b" 7"])
def test_what_is_no_figure_is_ignored(payload: bytes) -> None:
    worker = Worker()
    worker.receive(1)
    worker.plugin.receive(f"{PREFIX}floods", payload)
    worker.receive(2)
    assert worker.counts == {"broker: floods": 1}


def test_a_topic_that_the_plugin_does_not_have_makes_no_reason() -> None:
    worker = Worker()
    worker.receive(0, 9, kind="anything else")
    assert worker.counts == {}
