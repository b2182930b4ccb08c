import pytest

from fleet.workbench.sim.records.turns import Outcome, TurnLog

LOUD = b"\x00\x20" * 240
QUIET = bytes(480)


def _log() -> TurnLog:
    return TurnLog(lambda: None)


def _answered() -> TurnLog:
    log = _log()
    turn = log.begin(spoken=True)
    turn.mark("end of speech", 10.0)
    log.mark("stt", 10.3)
    log.speech_starts(10.4)
    log.mark("first packet", 10.6)
    log.played(10.65, QUIET, 24_000)
    log.played(10.66, QUIET[:240] + LOUD, 24_000)
    return log


def test_latencies_count_from_the_end_of_the_speech_and_skip_leading_silence() -> None:
    log = _answered()
    assert log.turns[0].latencies == {
        "stt": 300.0,
        "tts_start": 400.0,
        "first_packet": 600.0,
        "first_audible": 665.0,
    }


def test_a_turn_ends_when_the_answer_has_been_played() -> None:
    log = _answered()
    log.speech_stops(11.0, playing=True)
    assert log.turns[0].outcome == "open"
    log.drained(11.2)
    assert log.turns[0].outcome == "answered"
    assert log.turns[0].times["playback end"] == 11.2


def test_a_pause_inside_an_answer_does_not_end_it() -> None:
    log = _answered()
    log.drained(10.9)
    assert log.turns[0].outcome == "open"


def test_an_answer_without_sound_is_silent() -> None:
    log = _log()
    log.begin(spoken=True)
    log.speech_starts(1.0)
    log.played(1.1, QUIET, 24_000)
    log.speech_stops(1.2, playing=False)
    assert log.turns[0].outcome == "silent"


@pytest.mark.parametrize(("stopped", "outcome"), [(True, "answered"), (False, "closed")])
def test_a_goodbye_lets_the_rest_be_played(stopped: bool, outcome: Outcome) -> None:
    log = _answered()
    if stopped:
        log.speech_stops(11.0, playing=True)
    log.closed(playing=True)
    assert log.turns[0].outcome == "open"
    log.drained(11.5)
    assert log.turns[0].outcome == outcome


def test_a_goodbye_before_any_answer_closes_the_turn() -> None:
    log = _log()
    log.begin(spoken=True)
    log.closed(playing=True)
    assert log.turns[0].outcome == "closed"


def test_an_interrupted_answer_ends_with_tts_stop() -> None:
    log = _answered()
    log.interrupt()
    log.drained(11.0)
    assert log.turns[0].outcome == "open"
    log.speech_stops(11.1, playing=False)
    assert log.turns[0].outcome == "aborted"


def test_an_answer_that_nobody_asked_for_is_a_turn_of_its_own() -> None:
    log = _log()
    log.speech_starts(1.0)
    assert [turn.spoken for turn in log.turns] == [False]


def test_gaps_are_heard_as_silence() -> None:
    log = _log()
    turn = log.begin(spoken=True)
    log.speech_starts(0.0)
    log.played(1.0, LOUD, 24_000)
    log.played(1.02, LOUD, 24_000)
    assert turn.heard() == LOUD + QUIET + LOUD


def test_sound_of_the_answer_before_is_not_this_turns() -> None:
    log = _log()
    turn = log.begin(spoken=True)
    log.played(1.0, LOUD, 24_000)
    assert turn.heard() == b""


def test_answer_that_begins_before_a_stopped_one_is_played_is_a_turn_of_its_own() -> None:
    log = _answered()
    log.speech_stops(13.0, playing=True)
    log.speech_starts(13.1)
    assert [turn.outcome for turn in log.turns] == ["answered", "open"]
    assert log.turns[1].times == {"tts start": 13.1}
