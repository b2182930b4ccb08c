import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.endpointing import LONGEST_MS
from fleet.roles.edge.listening.utterance_collector import BYTES_PER_MS, PausedUtterance, Utterance, UtteranceCollector

FRAME_MS = 60
LOUD, QUIET = 0.9, 0.1


def frame(marker: int) -> bytes:
    return marker.to_bytes(2, "little") * (FRAME_MS * BYTES_PER_MS // 2)


def markers(utterance: Utterance) -> list[int]:
    step = FRAME_MS * BYTES_PER_MS
    return [int.from_bytes(utterance.pcm[at : at + 2], "little") for at in range(0, len(utterance.pcm), step)]


def test_utterance_holds_what_came_shortly_before_the_speech() -> None:
    collector = UtteranceCollector(300)
    collected = [
        collector.add(frame(number), LOUD if 20 <= number < 30 else QUIET, float(number)) for number in range(1, 41)
    ]
    [utterance] = [one for one in collected if isinstance(one, Utterance)]
    assert markers(utterance) == list(range(15, 35))
    assert utterance.voiced_ms == 600
    assert utterance.ended_at == 29


def test_more_is_kept_in_front_where_a_user_is_noticed_late() -> None:
    collector = UtteranceCollector(300, further_ms=240.0)
    collected = [collector.add(frame(number), LOUD if 20 <= number < 30 else QUIET, 0.0) for number in range(1, 41)]
    [utterance] = [one for one in collected if isinstance(one, Utterance)]
    assert markers(utterance) == list(range(11, 35))


def test_second_utterance_holds_nothing_of_the_first() -> None:
    collector = UtteranceCollector(180)
    collected = [
        collector.add(frame(number), LOUD if number % 10 in (4, 5, 6) else QUIET, float(number))
        for number in range(1, 31)
    ]
    assert [markers(one) for one in collected if isinstance(one, Utterance)] == [
        [1, 2, 3, 4, 5, 6, 7, 8, 9],
        [10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
        [20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
    ]


def test_push_to_talk_that_never_ends_is_cut() -> None:
    collector = UtteranceCollector(None)
    for number in range(1000):
        collector.add(frame(number), LOUD, float(number))
    utterance = collector.finish()
    assert utterance
    assert LONGEST_MS <= len(utterance.pcm) / BYTES_PER_MS < LONGEST_MS + FRAME_MS


def test_push_to_talk_without_speech_is_nothing() -> None:
    collector = UtteranceCollector(None)
    collector.add(frame(1), QUIET, 0.0)
    assert collector.finish() is None


def test_only_speech_since_the_mark_counts_as_overlap() -> None:
    collector = UtteranceCollector(600)
    for number in range(10):
        collector.add(frame(number), LOUD, 0.0)
    collector.mark_overlap()
    for speech in (LOUD, QUIET, LOUD):
        collector.add(frame(1), speech, 0.0)
    assert collector.overlap_ms == 120


def test_a_pause_comes_once_before_the_end_with_what_was_said_so_far() -> None:
    collector = UtteranceCollector(300, 120)
    collected: list[tuple[str, float]] = []
    for number, speech in enumerate([LOUD] * 3 + [QUIET] * 3 + [LOUD] * 3 + [QUIET] * 6):
        match collector.add(frame(number), speech, float(number)):
            case Utterance(voiced_ms=voiced):
                collected.append(("end", voiced))
            case PausedUtterance(Utterance(voiced_ms=voiced)):
                collected.append(("pause", voiced))
    assert collected == [("pause", 180.0), ("pause", 360.0), ("end", 360.0)]


@pytest.mark.parametrize("endpoint_ms", [600, None])
@pytest.mark.parametrize(("after", "paused"), [(LOUD, False), (QUIET, True)])
def test_a_lost_frame_alone_is_no_pause(endpoint_ms: int | None, after: float, paused: bool) -> None:
    collector = UtteranceCollector(endpoint_ms, 60)
    for number in range(1, 11):
        collector.add(frame(number), LOUD, 0.0)
    assert collector.add(frame(0), QUIET, 0.0) is False
    assert isinstance(collector.add(frame(0), after, 0.0), PausedUtterance) is paused
    assert isinstance(collector.add(frame(11), LOUD, 0.0), bool)
    assert isinstance(collector.add(frame(12), QUIET, 0.0), PausedUtterance)


@given(st.lists(st.tuples(st.sampled_from([QUIET, QUIET, 0.4, LOUD]), st.sampled_from([20, 60])), max_size=150))
def test_silence_that_is_taken_by_itself_changes_nothing(frames: list[tuple[float, int]]) -> None:
    whole, quick = UtteranceCollector(300, 180), UtteranceCollector(300, 180)
    for number, (speech, ms) in enumerate(frames):
        pcm = number.to_bytes(2, "little") * (ms * BYTES_PER_MS // 2)
        expected = whole.add(pcm, speech, float(number))
        assert (False if quick.add_silence(pcm, speech) else quick.add(pcm, speech, float(number))) == expected
        assert quick.recording == whole.recording


@pytest.mark.parametrize("sounds", [[(QUIET, 60)], [(LOUD, 20), (QUIET, 60), (QUIET, 60)]])
def test_what_is_no_utterance_is_forgotten(sounds: list[tuple[float, int]]) -> None:
    collector = UtteranceCollector(300)
    for number in range(2000):
        speech, ms = sounds[number % len(sounds)]
        pcm = bytes(ms * BYTES_PER_MS)
        assert collector.add_silence(pcm, speech) or collector.add(pcm, speech, 0.0) is False
    assert len(collector._before) < 40
