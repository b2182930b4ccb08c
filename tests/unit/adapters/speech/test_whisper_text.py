from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.whisper_text import decode, encode

VOCABULARY = {token: rank for rank, token in enumerate(["Ġ", "t", "h", "e", "he", "th", "Ġt"])}


def test_tokens_become_text() -> None:
    assert decode(["The", "Ġlight", "Ġis", "Ġon", "."]) == "The light is on."


def test_a_character_may_be_spread_over_tokens() -> None:
    assert decode(["ç", "ģ", "¯"]) == "灯"


def test_special_tokens_are_left_out() -> None:
    assert decode(["<|zh|>", "Hi", "<|endoftext|>"]) == "Hi"


def test_half_a_character_is_replaced() -> None:
    assert decode(["Hi", "ç"]) == "Hi\N{REPLACEMENT CHARACTER}"


def test_earlier_merges_go_first() -> None:
    assert encode("the", VOCABULARY) == ["t", "he"]
    assert encode("th the", VOCABULARY) == ["th", "Ġt", "he"]


@given(st.text(max_size=40))
def test_what_is_encoded_can_be_decoded(text: str) -> None:
    assert decode(encode(text, VOCABULARY)) == text
