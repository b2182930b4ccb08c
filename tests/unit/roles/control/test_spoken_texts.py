import pytest

from fleet.roles.control.problems import Problem
from fleet.roles.control.spoken_texts import check_spoken
from tests.support.every import for_every


@for_every("text", ["\u200b", "。。。", "?!?!", "😀👍", "👨\u200d👩\u200d👧", "\u202e\u202c", "**"])
def test_a_text_without_sound_is_refused(text: str) -> None:
    with pytest.raises(Problem) as refused:
        check_spoken(text)
    assert (refused.value.status_code, refused.value.code) == (422, "invalid")
    assert [one["at"] for one in refused.value.errors] == ["body.text"]


@for_every("text", ["Tea!", "吃饭了。", "😀 7", "Ужин"])
def test_a_text_with_a_word_or_a_number_is_not(text: str) -> None:
    check_spoken(text)
