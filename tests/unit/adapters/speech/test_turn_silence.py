from fleet.adapters.speech.turn_silence import SilenceTurnDetector
from fleet.core.ports import UNDECIDED, Transcript
from fleet.core.turn_end import TurnEnd


async def test_without_a_model_only_the_middle_wait_ends_an_utterance() -> None:
    detector, end = SilenceTurnDetector(), TurnEnd(600, 1200)
    probability = await detector.finished(bytes(3200))
    assert probability == UNDECIDED
    end.judge(probability)
    for text in ("Turn on the light.", "Set the volume to"):
        end.read(Transcript(text, "en"))
        assert end.decide(599) in ("wait", "tentative")
        assert end.decide(600) == "commit"
    await detector.aclose()
