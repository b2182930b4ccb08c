from fleet.core.endpointing import LONGEST_MS
from fleet.roles.edge.listening.utterance_collector import BYTES_PER_MS, Utterance, UtteranceCollector

FRAME_MS = 60
LOUD, QUIET = 0.9, 0.1


def frame(marker: int) -> bytes:
    return marker.to_bytes(2, "little") * (FRAME_MS * BYTES_PER_MS // 2)


def markers(utterance: Utterance) -> list[int]:
    step = FRAME_MS * BYTES_PER_MS
    return [int.from_bytes(utterance.pcm[at : at + 2], "little") for at in range(0, len(utterance.pcm), step)]


def test_utterance_holds_what_came_shortly_before_the_speech() -> None:
    said: list[Utterance] = []
    recorder = UtteranceCollector(300, lambda utterance, now: said.append(utterance))
    for number in range(1, 41):
        recorder.hear(frame(number), LOUD if 20 <= number < 30 else QUIET, float(number))
    [utterance] = said
    assert markers(utterance) == list(range(15, 35))
    assert utterance.voiced_ms == 600
    assert utterance.ended_at == 29


def test_second_utterance_holds_nothing_of_the_first() -> None:
    said: list[Utterance] = []
    recorder = UtteranceCollector(180, lambda utterance, now: said.append(utterance))
    for number in range(1, 31):
        recorder.hear(frame(number), LOUD if number % 10 in (4, 5, 6) else QUIET, float(number))
    assert [markers(utterance) for utterance in said] == [
        [1, 2, 3, 4, 5, 6, 7, 8, 9],
        [10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
        [20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
    ]


def test_push_to_talk_that_never_ends_is_cut() -> None:
    recorder = UtteranceCollector(None, lambda utterance, now: None)
    for number in range(1000):
        recorder.hear(frame(number), LOUD, float(number))
    utterance = recorder.finish()
    assert utterance
    assert LONGEST_MS <= len(utterance.pcm) / BYTES_PER_MS < LONGEST_MS + FRAME_MS


def test_push_to_talk_without_speech_is_nothing() -> None:
    recorder = UtteranceCollector(None, lambda utterance, now: None)
    recorder.hear(frame(1), QUIET, 0.0)
    assert recorder.finish() is None


def test_only_speech_since_the_mark_counts_as_overlap() -> None:
    recorder = UtteranceCollector(600, lambda utterance, now: None)
    for number in range(10):
        recorder.hear(frame(number), LOUD, 0.0)
    recorder.mark_overlap()
    for speech in (LOUD, QUIET, LOUD):
        recorder.hear(frame(1), speech, 0.0)
    assert recorder.overlap_ms == 120


def test_a_pause_is_told_once_before_the_end_with_what_was_said_so_far() -> None:
    told: list[tuple[str, float]] = []
    recorder = UtteranceCollector(
        300,
        lambda utterance, now: told.append(("end", utterance.voiced_ms)),
        120,
        lambda utterance: told.append(("pause", utterance.voiced_ms)),
    )
    for number, speech in enumerate([LOUD] * 3 + [QUIET] * 3 + [LOUD] * 3 + [QUIET] * 6):
        recorder.hear(frame(number), speech, float(number))
    assert told == [("pause", 180.0), ("pause", 360.0), ("end", 360.0)]
