from hypothesis import given
from hypothesis import strategies as st

from fleet.gateway.spoken import Spoken


def say(*pieces: str) -> Spoken:
    spoken = Spoken()
    joined = [part for piece in pieces for part in spoken.feed(piece)] + spoken.flush()
    assert "".join(joined) == spoken.text
    return spoken


def test_decoration_markdown_and_emoji_are_left_out() -> None:
    assert say("★ **今天**天气*晴朗* 😀，约22度。◆").text == "今天天气晴朗，约22度。"
    assert say("# Plan\n- one\n- `two`").text == "Plan one two"


def test_sentences_are_joined_as_their_script_wants_it() -> None:
    assert say("你好。很高兴。").text == "你好。很高兴。"
    assert say("Hello. How are you?").text == "Hello. How are you?"
    assert say("안녕하세요. 반갑습니다.").text == "안녕하세요. 반갑습니다."


def test_messages_of_one_turn_follow_each_other() -> None:
    spoken = say("Let me look.")
    spoken.feed("It is 22 degrees.")
    spoken.flush()
    assert spoken.text == "Let me look. It is 22 degrees."


def test_words_tells_an_emoji_from_nothing() -> None:
    assert not say("", "  ").words
    emoji = say("👍")
    assert emoji.words
    assert emoji.text == ""


@given(st.text(max_size=200), st.integers(1, 20))
def test_text_does_not_depend_on_how_it_came(text: str, size: int) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert say(*pieces).text == say(text).text
