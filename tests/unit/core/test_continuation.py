from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.continuation import Continuation, remind
from fleet.core.ports import Message

HEARD = ("Once there was a cat.", "It was red.")


def passed(said: tuple[str, ...], *pieces: str) -> tuple[list[str], str]:
    """Return what is passed on of a message that comes in pieces, and all of it."""
    text = Continuation(said)
    return [new for piece in pieces if (new := text.take(piece))], text.new


async def test_a_message_of_its_own_is_passed_on_as_it_comes() -> None:
    assert passed((), "Hel", "lo.", "") == (["Hel", "lo."], "Hello.")


@pytest.mark.parametrize(
    "repeated",
    [
        "Once there was a cat. It was red.",
        " \nOnce there was a cat.It was red.",
        "Once  there was\na cat. It was red.",
    ],
)
async def test_what_is_repeated_word_for_word_is_left_out(repeated: str) -> None:
    assert (passed(HEARD, f"{repeated} It slept."))[1].strip() == "It slept."
    assert (passed(HEARD, *f"{repeated} It slept."))[1].strip() == "It slept."


async def test_what_goes_on_is_passed_on_from_its_first_character() -> None:
    assert passed(HEARD, "It slept.") == (["It slept."], "It slept.")
    assert (passed(HEARD, *"It slept."))[1] == "It slept."


async def test_what_only_begins_like_a_repetition_is_passed_on_whole() -> None:
    assert passed(HEARD, "Once there", " was", " a dog.") == (["Once there was a dog."], "Once there was a dog.")


async def test_a_repetition_without_anything_new_says_nothing() -> None:
    assert passed(HEARD, *HEARD) == ([], "")
    assert passed(HEARD, "Once there was") == ([], "")


async def test_only_the_beginning_is_compared() -> None:
    assert (passed(("Yes.",), "Yes. Yes. No."))[1] == " Yes. No."


TEXT = st.text(alphabet="ab. \n好", max_size=20)


@given(st.lists(TEXT, max_size=3), TEXT, st.lists(st.integers(0, 60), max_size=6))
def test_nothing_is_lost_or_said_twice_however_it_comes(said: list[str], rest: str, cuts: list[int]) -> None:
    whole = f"{' '.join(said)}{rest}"
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    said_now, new = passed(tuple(said), *pieces)
    assert "".join(said_now) == new
    assert "".join(new.split()) == "".join(rest.split())


def test_the_model_is_told_what_was_heard_in_the_system_message() -> None:
    asked = (Message("system", "Be brief."), Message("user", "a story"))
    system, user = remind(asked, HEARD)
    assert system.role == "system"
    assert system.text.startswith("Be brief.\n")
    assert "<heard>Once there was a cat. It was red.</heard>" in system.text
    assert user == asked[1]


def test_without_a_system_message_it_gets_one() -> None:
    system, user = remind((Message("user", "a story"),), HEARD)
    assert (system.role, user.role) == ("system", "user")
    assert HEARD[1] in system.text
