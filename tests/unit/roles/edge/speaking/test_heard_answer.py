from collections import Counter

from fleet.core.playout import Playout
from fleet.roles.edge.speaking.heard_answer import EARLY_SECONDS, HeardAnswer
from fleet.roles.edge.speaking.speech import SpokenAnswer
from fleet.wire.edge_messages import SpeakSentenceCommand


def answer(sentences: int = 1, spoken: int = 1, *, local: bool = False, failed: bool = False) -> SpokenAnswer:
    made = SpokenAnswer("t1", local=local, failed=failed)
    made.prepare(Playout(60, b""), Counter(), 0.0)
    for index in range(sentences):
        made.add(SpeakSentenceCommand(device="d", session="s", turn="t1", index=index, text="x"))
    made.playout.begun = spoken
    made.end()
    return made


def heard(one: SpokenAnswer, began_at: float | None = 12.0) -> tuple[str, int]:
    known = HeardAnswer()
    known.note(answer(), 5.0)
    known.note(one, 10.0)
    return known.before(began_at)


def test_an_utterance_after_an_answer_knows_the_answer_and_the_pause() -> None:
    assert heard(answer()) == ("t1", 2000)
    assert heard(answer(), 10.0 - EARLY_SECONDS / 2) == ("t1", 0)


def test_an_answer_counts_only_if_it_was_heard_whole_and_before() -> None:
    assert HeardAnswer().before(1.0) == ("", 0)
    assert heard(answer(), None) == ("", 0)
    assert heard(answer(), 9.9 - EARLY_SECONDS) == ("", 0)
    assert heard(answer(sentences=2)) == ("", 0)
    assert heard(answer(local=True)) == ("", 0)
    assert heard(answer(failed=True)) == ("", 0)
