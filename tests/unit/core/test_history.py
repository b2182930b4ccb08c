from hypothesis import given
from hypothesis import strategies as st

from fleet.core.history import INTERRUPTED, UNANSWERED, certain, count_sentences, cut, settle, since_user
from fleet.core.ports import Message, ToolCall
from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable
from tests.support.growth import grows_evenly

USER = Message("user", "hi")
CALLS = (ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}"))


def assistant(text: str, *calls: ToolCall) -> Message:
    return Message("assistant", text, calls)


def outcome(call: str, text: str = "done") -> Message:
    return Message("tool", text, call_id=call)


def shown(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_a_turn_without_faults_is_left_as_it_is() -> None:
    turn = (USER, assistant("One moment.", *CALLS), outcome("a"), outcome("b"), assistant("Done."))
    assert settle(turn) == turn


def test_every_call_has_an_outcome_and_every_outcome_a_call() -> None:
    turn = (
        outcome("x"),
        USER,
        outcome("a"),
        assistant("", *CALLS),
        outcome("b"),
        outcome("c"),
        outcome("b", "2"),
        USER,
    )
    assert settle(turn) == (USER, assistant("", *CALLS), outcome("a", UNANSWERED), outcome("b"), USER)


def test_an_outcome_belongs_to_the_message_before_it() -> None:
    call = ToolCall("a", "t", "{}")
    turn = (USER, assistant("", call), USER, assistant("", call), outcome("a"))
    assert settle(turn)[2] == outcome("a", UNANSWERED)
    assert settle(turn)[-1] == outcome("a")


def test_answers_that_follow_each_other_become_one_and_empty_ones_none() -> None:
    turn = (USER, assistant("A."), assistant(" \n"), assistant("B."), assistant("C.", CALLS[0]), outcome("a"))
    assert settle(turn) == (USER, assistant("A. B. C.", CALLS[0]), outcome("a"))


def test_history_begins_with_a_user() -> None:
    turn = (outcome("b"), assistant("Done."), USER, assistant("Yes."))
    assert since_user(turn) == turn[2:]
    assert since_user(turn[:2]) == ()
    assert since_user(()) == ()


STORY = "Once there was a cat. It was red. 😀\nIt slept."


def test_an_answer_is_cut_behind_what_was_heard() -> None:
    ends = ["", "Once there was a cat. ", "Once there was a cat. It was red. ", f"{STORY} ", f"{STORY} "]
    for spoken, end in enumerate(ends):
        assert shown(cut((USER, assistant(STORY)), spoken)) == [("user", "hi"), ("assistant", f"{end}{INTERRUPTED}")]


def test_what_tools_did_stays_and_what_was_said_later_goes() -> None:
    turn = (USER, assistant("I look.", CALLS[0]), outcome("a"), assistant("It is there. And more."))
    assert shown(cut(turn, 2)) == [
        ("user", "hi"),
        ("assistant", "I look."),
        ("tool", "done"),
        ("assistant", f"It is there. {INTERRUPTED}"),
    ]
    assert shown(cut(turn, 0))[1:] == [("assistant", ""), ("tool", "done"), ("assistant", INTERRUPTED)]


def test_a_call_without_an_outcome_is_told_as_unknown() -> None:
    assert shown(cut((USER, assistant("", CALLS[0])), 0))[1:] == [
        ("assistant", ""),
        ("tool", UNANSWERED),
        ("assistant", INTERRUPTED),
    ]


TEXT = st.text(alphabet="ab.,!? \n。，好*`1😀", max_size=60)


def pieces(*chunks: str) -> list[str]:
    """Return what would be spoken of a text that comes in chunks."""
    splitter = SentenceSplitter()
    cuts = [piece for chunk in chunks for piece in splitter.feed(chunk)]
    return [said for piece in (*cuts, *splitter.flush()) if (said := speakable(piece))]


@given(TEXT, st.integers(0, 8), st.integers(0, 60))
def test_what_is_kept_is_what_was_handed_over_for_speech(text: str, spoken: int, at: int) -> None:
    handed = pieces(text[:at], text[at:])
    kept = cut((USER, assistant(text)), spoken)[-1].text.removesuffix(INTERRUPTED).strip()
    assert pieces(kept)[:spoken] == handed[:spoken]
    assert "".join(text.split()).startswith("".join(kept.split()))


@given(TEXT, st.integers(0, 60), TEXT)
def test_what_is_certain_of_a_text_is_cut_as_the_whole_text_is(text: str, at: int, more: str) -> None:
    splitter = SentenceSplitter()
    cuts = [*splitter.feed(text[:at]), *splitter.feed(text[at:])]
    kept = certain(text)
    assert text.startswith(kept)
    again = SentenceSplitter()
    assert [*again.feed(kept), *again.flush()] == cuts
    assert SentenceSplitter().feed(text + more)[: len(cuts)] == cuts


def test_nothing_is_certain_of_a_sentence_that_has_no_end_yet() -> None:
    assert certain("Once there was a cat. It was") == "Once there was a cat."
    assert certain("Once") == certain("") == ""


def test_long_code_that_is_not_spoken_does_not_confuse_the_count() -> None:
    text = f"Here it is. ```{'x = 1; ' * 900}``` That was it. More."
    kept = cut((USER, assistant(text)), 2)[-1].text
    assert kept.endswith(f"That was it. {INTERRUPTED}")


MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(assistant, TEXT),
        st.builds(assistant, TEXT, st.sampled_from(CALLS)),
        st.builds(outcome, st.sampled_from("abc")),
    ),
    max_size=12,
)


@given(MESSAGES, st.integers(0, 9))
def test_whatever_is_remembered_an_endpoint_accepts(messages: list[Message], spoken: int) -> None:
    for kept in (settle(messages), cut(messages, spoken), since_user(messages)):
        wanted: list[str] = []
        for message in kept:
            if message.role == "tool":
                assert message.call_id == wanted.pop(0)
                continue
            assert not wanted
            wanted = [call.id for call in message.calls]
        assert not wanted


def test_cutting_many_sentences_takes_no_longer_than_in_proportion() -> None:
    assert grows_evenly(lambda count: certain("a\n" * count), 30_000)


@given(st.text(alphabet="ab .!?…\n`*“”0", max_size=60))
def test_a_text_has_as_many_sentences_as_are_spoken(text: str) -> None:
    splitter = SentenceSplitter()
    pieces = [*splitter.feed(text), *splitter.flush()]
    assert count_sentences(text) == sum(bool(speakable(one)) for one in pieces)
