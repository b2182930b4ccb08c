import pytest

from fleet.workbench.sim.audio.speaker import Speaker

FRAME = 0.06


def _fill(speaker: Speaker, count: int, now: float) -> list[bool]:
    return [speaker.push(b"%d" % number, FRAME, now) for number in range(count)]


def test_packets_sound_one_after_the_other_however_early_they_came() -> None:
    speaker = Speaker()
    _fill(speaker, 3, 10.0)
    starts = [round(played.at, 6) for played in speaker.take(11.0)]
    assert starts == [10.0, 10.06, 10.12]


def test_a_packet_sounds_only_when_its_time_has_come() -> None:
    speaker = Speaker()
    _fill(speaker, 3, 10.0)
    assert [played.packet for played in speaker.take(10.07)] == [b"0", b"1"]
    assert speaker.depth == 1
    assert speaker.due(10.07) == pytest.approx(10.12)


def test_the_packet_that_finds_the_queue_full_is_dropped() -> None:
    speaker = Speaker(capacity=40)
    # One sounds, forty wait.
    assert _fill(speaker, 50, 0.0) == [True] * 41 + [False] * 9
    assert speaker.push(b"later", FRAME, 0.061)


def test_packets_in_time_leave_no_gap() -> None:
    speaker = Speaker()
    for number in range(20):
        speaker.push(b"x", FRAME, number * FRAME)
    assert speaker.take_gaps() == []


def test_a_late_packet_leaves_a_gap_of_the_time_that_the_queue_was_dry() -> None:
    speaker = Speaker()
    speaker.push(b"x", FRAME, 1.0)
    speaker.push(b"x", FRAME, 1.2)
    (gap,) = speaker.take_gaps()
    assert (round(gap.at, 6), round(gap.seconds, 6)) == (1.06, 0.14)
    assert speaker.take_gaps() == []


def test_silence_between_two_answers_is_no_gap() -> None:
    speaker = Speaker()
    speaker.push(b"x", FRAME, 1.0)
    speaker.end_answer()
    speaker.push(b"x", FRAME, 9.0)
    assert speaker.take_gaps() == []


def test_clearing_drops_what_waits_but_not_what_sounds() -> None:
    speaker = Speaker()
    _fill(speaker, 5, 0.0)
    assert speaker.clear() == 4
    assert not speaker.idle(0.05)
    assert speaker.idle(0.06)
    assert len(speaker.take(1.0)) == 1


def test_an_empty_speaker_is_idle_and_has_nothing_due() -> None:
    speaker = Speaker()
    assert speaker.idle(0.0)
    assert speaker.due(0.0) is None


def test_sound_is_heard_when_it_has_passed_the_dma_buffers() -> None:
    speaker = Speaker(dma=0.06)
    _fill(speaker, 2, 10.0)
    assert [round(played.at, 6) for played in speaker.take(11.0)] == [10.06, 10.12]
    assert speaker.busy_until == pytest.approx(10.12), (
        "firmware takes the last packet for played when it handed it over"
    )


def test_a_gap_begins_when_the_queue_ran_dry_and_is_no_shorter_for_the_dma_buffers() -> None:
    speaker = Speaker(dma=0.06)
    speaker.push(b"x", FRAME, 1.0)
    speaker.push(b"x", FRAME, 1.2)
    (gap,) = speaker.take_gaps()
    assert (round(gap.at, 6), round(gap.seconds, 6)) == (1.06, 0.14)
