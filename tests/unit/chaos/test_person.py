"""How the chaos harness judges that a turn has ended."""

import pytest

from tests.chaos.history import Turn
from tests.chaos.person import judge

SORRY = "Sorry, I cannot answer right now."
WANTED = ["Scene 100: done.", "Scene 100 goes on."]


def a_turn(*sentences: str, **changes: object) -> Turn:
    turn = Turn(1, "02:c4:05:00:00:01", 100, begun=1.0)
    turn.sentences, turn.wanted = list(sentences), WANTED
    for name, value in changes.items():
        setattr(turn, name, value)
    return turn


def test_a_whole_answer_that_stopped_is_one() -> None:
    assert judge(a_turn(*WANTED, stops=1)) == "answered"


@pytest.mark.parametrize("turn", [a_turn(*WANTED), a_turn(WANTED[0], stops=1), a_turn(), a_turn(SORRY)])
def test_a_turn_goes_on_until_speech_has_stopped_with_all_that_was_written(turn: Turn) -> None:
    assert judge(turn) is None


def test_an_apology_ends_a_turn_spoken_or_written() -> None:
    assert judge(a_turn(SORRY, stops=1)) == "apologised"
    assert judge(a_turn(WANTED[0], SORRY, stops=1)) == "apologised"
    assert judge(a_turn(alerts=[SORRY])) == "apologised"


def test_the_devices_own_alert_ends_a_turn() -> None:
    assert judge(a_turn(failed=True)) == "device alert"


def test_sound_counts_where_the_words_were_lost() -> None:
    sound = [0.06 * packet for packet in range(20)]
    assert judge(a_turn(stops=1, deaf=True, packets=sound)) == "answered"
    assert judge(a_turn(stops=1, packets=sound)) is None
    assert judge(a_turn(stops=1, deaf=True, packets=sound[:5])) is None
    assert judge(a_turn(deaf=True, packets=sound)) is None
    assert judge(a_turn(deaf=True, packets=sound), idle=True) == "answered"
