import logging
from collections.abc import Iterable

import pytest

from fleet.adapters.llm import calls as module
from fleet.adapters.llm.calls import CallMerger, CallPiece, FunctionPiece
from fleet.core.ports import ToolCall


def piece(
    index: int | None = None,
    id: str | None = None,
    name: str | None = None,
    arguments: str | dict[str, object] | None = None,
) -> CallPiece:
    return CallPiece(index=index, id=id, function=FunctionPiece(name=name, arguments=arguments))


def merge(pieces: Iterable[CallPiece], taken: Iterable[str] = ()) -> tuple[ToolCall, ...]:
    merger = CallMerger()
    for one in pieces:
        merger.add(one)
    return merger.finish(set(taken))


def named(calls: Iterable[ToolCall]) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in calls]


WANTED = [("volume", '{"level":3}'), ("light", '{"on":true}')]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                piece(0, "a", "volume", ""),
                piece(0, None, None, '{"lev'),
                piece(0, None, None, 'el":3}'),
                piece(1, "b", "light", ""),
                piece(1, None, None, '{"on":true}'),
            ],
            id="split, as OpenAI sends them",
        ),
        pytest.param(
            [
                piece(0, "a", "volume", '{"lev'),
                piece(1, "b", "light", '{"on"'),
                piece(0, None, None, 'el":3}'),
                piece(1, None, None, ":true}"),
            ],
            id="mixed",
        ),
        pytest.param(
            [
                piece(0, "a", "volume", '{"lev'),
                piece(0, "a", "volume", 'el":3}'),
                piece(1, "b", "light", '{"on"'),
                piece(1, "b", "light", ":true}"),
            ],
            id="id and name repeated in every piece",
        ),
        pytest.param([piece(0, "a", "volume", '{"level":3}'), piece(1, "b", "light", '{"on":true}')], id="whole"),
        pytest.param([piece(0, "a", "volume", '{"level":3}'), piece(0, "b", "light", '{"on":true}')], id="all index 0"),
        pytest.param(
            [piece(0, "", "volume", '{"level":3}'), piece(0, "", "light", '{"on":true}')], id="no ids, index 0"
        ),
        pytest.param(
            [piece(None, "a", "volume", '{"level":3}'), piece(None, "b", "light", '{"on":true}')], id="no index"
        ),
        pytest.param(
            [
                piece(None, "a", "volume", '{"lev'),
                piece(None, None, None, 'el":3}'),
                piece(None, "b", "light", '{"on"'),
                piece(None, None, None, ":true}"),
            ],
            id="split without index",
        ),
        pytest.param(
            [
                piece(None, "a", "volume", '{"lev'),
                piece(None, "b", "light", '{"on"'),
                piece(None, "a", None, 'el":3}'),
                piece(None, "b", None, ":true}"),
            ],
            id="mixed without index",
        ),
        pytest.param(
            [piece(None, None, "volume", '{"level":3}'), piece(None, None, "light", '{"on":true}')], id="names only"
        ),
        pytest.param([piece(7, "a", "volume", '{"level":3}'), piece(3, "b", "light", '{"on":true}')], id="odd indices"),
    ],
)
def test_every_way_to_send_two_calls_gives_two_calls(pieces: list[CallPiece]) -> None:
    calls = merge(pieces)
    assert named(calls) == WANTED
    assert len({call.id for call in calls} - {""}) == 2


def test_the_same_call_twice_without_ids_is_two_calls() -> None:
    same = piece(0, None, "volume", '{"level":3}')
    assert named(merge([same, same])) == [WANTED[0]] * 2


def test_an_empty_piece_after_a_whole_call_changes_nothing() -> None:
    assert named(merge([piece(0, "a", "volume", '{"level":3}'), piece(0, "a", "volume", ""), piece(0)])) == WANTED[:1]


def test_arguments_may_be_an_object() -> None:
    assert named(merge([piece(0, "a", "say", {"text": "早"})])) == [("say", '{"text": "早"}')]


def test_missing_arguments_are_an_empty_object() -> None:
    assert named(merge([piece(0, "a", "ping"), piece(1, "b", "pong", " ")])) == [("ping", "{}"), ("pong", "{}")]


def test_bad_arguments_are_handed_on_as_they_are() -> None:
    assert named(merge([piece(0, "a", "volume", '{"level":')])) == [("volume", '{"level":')]


def test_ids_are_kept_unless_taken_or_used_twice() -> None:
    pieces = [piece(0, "a", "x"), piece(1, "b", "x"), piece(2, "b", "x")]
    first, second, third = merge(pieces, taken=["a"])
    assert second.id == "b"
    assert len({first.id, second.id, third.id, "a"}) == 4


def test_a_call_without_a_name_is_dropped_and_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert merge([piece(0, "a", None, "{}"), CallPiece()]) == ()
    assert "without a name" in caplog.text


def test_the_arguments_of_a_call_in_many_pieces_are_not_parsed_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[int]()

    def note(text: str) -> bool:
        parsed.append(len(text))
        return False

    with monkeypatch.context() as patch:
        patch.setattr(module, "is_object", note)
        pieces = [piece(0, "a", "t", '{"x":['), *(piece(0, None, "t", "{},") for _ in range(10_000))]
        assert len(merge(pieces)) == 1 and not parsed
        merge([piece(0, "a", "t", '{"x":['), *(piece(0, None, "t", ",{}") for _ in range(10_000))])
    assert sum(parsed) <= 1_000_000
