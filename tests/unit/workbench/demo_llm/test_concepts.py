from fleet.workbench.demo_llm.concepts import compounds, concepts, small_talk, stop_characters, stop_words
from tests.support.demo_tools import stock_tools


def test_every_compound_means_known_concepts() -> None:
    assert {name for compound in compounds() for name in compound.means} <= set(concepts())


def test_every_concept_can_be_said_in_both_languages() -> None:
    assert [name for name, concept in concepts().items() if not (concept.label_en and concept.label_zh)] == []


def test_no_tool_is_hard_wired() -> None:
    known = {phrase.replace(" ", "_") for concept in concepts().values() for phrase in concept.phrases}
    assert not known & {tool.name for tool in stock_tools()}


def test_stop_words_and_small_talk_are_read() -> None:
    assert {"the", "please"} <= stop_words()
    assert "的" in stop_characters()
    assert all(talk.en and talk.zh for talk in small_talk().values())
