import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.core.endpointing import LONGEST_MS, PREROLL_MS, Ended, Endpointer, Started

LOUD, WEAK, QUIET = 0.9, 0.4, 0.1


def run(endpoint: Endpointer, *parts: tuple[float, float], ms: float = 20.0) -> list[tuple[float, Started | Ended]]:
    """Feed (probability, length) parts; return events with the time at which they came."""
    now, events = 0.0, []
    for speech, length in parts:
        for _ in range(round(length / ms)):
            now += ms
            if event := endpoint.step(speech, ms):
                events.append((now, event))
    return events


@pytest.mark.parametrize("ms", [20.0, 40.0, 60.0, 120.0])
def test_utterance_begins_after_120_ms_of_speech_and_ends_after_the_silence(ms: float) -> None:
    events = run(Endpointer(600), (QUIET, 1200), (LOUD, 1200), (QUIET, 1200), ms=ms)
    assert events == [(1320, Started(120 + PREROLL_MS, 120)), (3000, Ended(600))]


def test_click_begins_nothing() -> None:
    assert run(Endpointer(600), (QUIET, 500), (LOUD, 100), (QUIET, 900), (LOUD, 100), (QUIET, 500)) == []


def test_speech_may_be_broken_within_the_window() -> None:
    [(at, started)] = run(Endpointer(600), (LOUD, 60), (QUIET, 100), (LOUD, 60))
    assert at == 220
    assert started == Started(220 + PREROLL_MS, 120)


def test_weak_frames_begin_nothing_but_keep_an_utterance_going() -> None:
    assert run(Endpointer(400), (WEAK, 2000)) == []
    events = run(Endpointer(400), (LOUD, 200), (WEAK, 2000), (QUIET, 400))
    assert [at for at, _ in events] == [120, 2600]


def test_pause_shorter_than_the_endpoint_is_part_of_the_utterance() -> None:
    events = run(Endpointer(600), (LOUD, 400), (QUIET, 580), (LOUD, 400), (QUIET, 600))
    assert [at for at, _ in events] == [120, 1980]


def test_endless_speech_is_cut() -> None:
    [(begun, _), (ended, event)] = run(Endpointer(600), (LOUD, 61_000))[:2]
    assert isinstance(event, Ended)
    assert event.cut
    assert ended - begun <= LONGEST_MS


def test_utterances_follow_one_another() -> None:
    events = run(Endpointer(200), *[(LOUD, 300), (QUIET, 300)] * 3)
    assert [type(event) for _, event in events] == [Started, Ended] * 3


def test_reset_forgets_speech_that_was_heard() -> None:
    endpoint = Endpointer(200)
    run(endpoint, (LOUD, 100))
    endpoint.reset()
    assert run(endpoint, (LOUD, 100)) == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=400), st.sampled_from([20.0, 32.0, 60.0]))
def test_starts_and_ends_always_take_turns(frames: list[float], ms: float) -> None:
    endpoint = Endpointer(200)
    events = [event for speech in frames if (event := endpoint.step(speech, ms))]
    assert [type(event) for event in events] == ([Started, Ended] * len(events))[: len(events)]
    assert endpoint.inside == (len(events) % 2 == 1)
