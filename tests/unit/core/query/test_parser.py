"""Queries for devices: what they mean, and what is said of wrong ones."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.query.conditions import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    FreeText,
    Negation,
    QueryError,
)
from fleet.core.query.fields import DEVICE_FIELDS, milliseconds, version_number
from fleet.core.query.parser import DEEPEST, MOST_TERMS, parse

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
ONLINE = Comparison("online", "=", True)


def read(query: str) -> Condition:
    return parse(query, DEVICE_FIELDS, NOW)


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("", EVERYTHING),
        ("  \n", EVERYTHING),
        ("kitchen", FreeText("kitchen")),
        ('"two words"', FreeText("two words")),
        ("02:00:00:00:00:01", Comparison("mac", "=", "02:00:00:00:00:01")),
        ("online", ONLINE),
        ('"online"', FreeText("online")),
        ("online=false", Comparison("online", "=", False)),
        ("NOT online", Negation(ONLINE)),
        ("-online", Negation(ONLINE)),
        ("board", FreeText("board")),
        ("board:bread-*", Comparison("board", ":", "bread-*")),
        ('name = "living room"', Comparison("name", "=", "living room")),
        (r'name="a \"b\" \\ c"', Comparison("name", "=", 'a "b" \\ c')),
        ("mac=02:00:00:00:00:01", Comparison("mac", "=", "02:00:00:00:00:01")),
        ("tag.site=berlin", Comparison("tag", "=", "berlin", "site")),
        ("tag:site", Comparison("tag", ":", "site")),
        ("firmware<2.5", Comparison("firmware", "<", version_number("2.5") or 0)),
        ("last_seen>-7d", Comparison("last_seen", ">", milliseconds(datetime(2026, 11, 17, 12, tzinfo=UTC)))),
        ("last_boot<=2026-11-24T08:00:00+08:00", Comparison("last_boot", "<=", milliseconds(NOW.replace(hour=0)))),
        ("online kitchen", AllOf((ONLINE, FreeText("kitchen")))),
        ("online AND kitchen AND board=x", AllOf((ONLINE, FreeText("kitchen"), Comparison("board", "=", "x")))),
        ("online OR kitchen", AnyOf((ONLINE, FreeText("kitchen")))),
        ("(online OR a) b", AllOf((AnyOf((ONLINE, FreeText("a"))), FreeText("b")))),
        ("NOT (a OR b)", Negation(AnyOf((FreeText("a"), FreeText("b"))))),
        ("厨房", FreeText("厨房")),
    ],
)
def test_a_query_means(query: str, condition: Condition) -> None:
    assert read(query) == condition


@pytest.mark.parametrize(
    ("query", "position", "reason"),
    [
        ("colour=red", 0, "there is no field 'colour'"),
        ("a colour=red", 2, "there is no field 'colour'"),
        ("a AND b OR c", 8, "parentheses"),
        ("a OR b c", 7, "parentheses"),
        ("a AND", 5, "missing at the end"),
        ("AND a", 0, "missing before 'AND'"),
        ("(a", 0, "never closed"),
        ("a)", 1, "never opened"),
        ("()", 1, "missing before ')'"),
        ('name="a', 5, "no end"),
        ("name=", 4, "a value is missing"),
        ("=a", 0, "a field or a word is missing"),
        ("name<a", 4, "takes = != :"),
        ("firmware<new", 9, "a version like"),
        ("firmware<٢", 9, "a version like"),
        ("last_seen>-١d", 10, "a time like"),
        ("last_seen>soon", 10, "a time like"),
        ("last_seen>-999999w", 10, "out of range"),
        ("online=yes", 7, "true or false"),
        ("board.x=1", 5, "has no keys"),
        ("tag.=1", 4, "a key has"),
        ("tag=berlin", 0, "a key is missing"),
        ("x" * 2001, 2000, "at most 2000"),
        ("(" * (DEEPEST + 2) + "a", DEEPEST + 1, "may be open"),
        ("online notes:*" + "a" * 200, 13, "at most 200 characters"),
        ("online " + "a" * 201, 7, "at most 200 characters"),
        ('"' + "a" * 201 + '"', 0, "at most 200 characters"),
        ("a " * (MOST_TERMS + 1), 2 * MOST_TERMS, "at most 60 terms"),
    ],
)
def test_a_wrong_query_is_explained_with_the_position(query: str, position: int, reason: str) -> None:
    with pytest.raises(QueryError, match=reason.replace("(", r"\(").replace(")", r"\)")) as caught:
        read(query)
    assert caught.value.position == position


PIECES = st.sampled_from(
    [
        "a",
        "online",
        "NOT",
        "AND",
        "OR",
        "(",
        ")",
        "-",
        '"',
        "=",
        "<",
        ":",
        " ",
        "tag.site",
        "firmware",
        "2.5",
        "*",
        "\\",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_position_inside(query: str) -> None:
    try:
        read(query)
    except QueryError as error:
        assert 0 <= error.position <= len(query)
