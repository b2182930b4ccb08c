"""Splits the text of a query into terms with their positions."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from fleet.core.query.conditions import QueryError

LONGEST_QUERY = 2_000
"""Characters of a query."""
LONGEST_PATTERN = 200
"""Characters of a value after `:`, and of a word: texts are compared with it at each of their characters."""
_BLANK = re.compile(r"\s+")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?=[\s()]|$)")
_OPERATOR = re.compile(r"\s*(<=|>=|!=|=|<|>|:)\s*")
_WORD = re.compile(r'[^\s()"=<>!:]+')
_VALUE = re.compile(r'[^\s()"]+')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Term(NamedTuple):
    """A piece of a query.

    `kind` is one of `( ) AND OR NOT text comparison`. `field`, `operator` and `text` are those of a comparison; of
    `text` only `text` is set. `quoted` says whether the text stood in quotes, where `*` and `true` mean themselves.
    """

    kind: str
    position: int
    text: str = ""
    field: str = ""
    operator: str = ""
    quoted: bool = False
    value_position: int = 0


def split(query: str) -> Iterator[Term]:
    """Yield the terms of a query.

    Raises:
        QueryError: The query is too long, a quote has no end, or a value is missing.
    """
    if len(query) > LONGEST_QUERY:
        raise QueryError(f"a query has at most {LONGEST_QUERY} characters", LONGEST_QUERY)
    at = 0
    while at < len(query):
        if blank := _BLANK.match(query, at):
            at = blank.end()
            continue
        term, at = _next(query, at)
        if len(term.text) > LONGEST_PATTERN and (term.kind == "text" or term.operator == ":"):
            position = term.value_position or term.position
            raise QueryError(f"a pattern has at most {LONGEST_PATTERN} characters", position)
        yield term


def _next(query: str, at: int) -> tuple[Term, int]:
    character = query[at]
    if character in "()":
        return Term(character, at), at + 1
    if character == "-":
        return Term("NOT", at), at + 1
    if character == '"':
        text, end = _quoted(query, at)
        return Term("text", at, text, quoted=True), end
    if mac := _MAC.match(query, at):
        return Term("comparison", at, mac[0], "mac", "=", False, at), mac.end()
    word = _WORD.match(query, at)
    if word is None:
        raise QueryError(f"a field or a word is missing before {character!r}", at)
    if word[0] in ("AND", "OR", "NOT"):
        return Term(word[0], at), word.end()
    operator = _OPERATOR.match(query, word.end())
    if operator is None:
        return Term("text", at, word[0]), word.end()
    return _comparison(query, word, operator)


def _comparison(query: str, field: re.Match[str], operator: re.Match[str]) -> tuple[Term, int]:
    at = operator.end()
    if query[at : at + 1] == '"':
        text, end = _quoted(query, at)
        return Term("comparison", field.start(), text, field[0], operator[1], True, at), end
    value = _VALUE.match(query, at)
    if value is None:
        raise QueryError(f"a value is missing after {operator[1]!r}", operator.start(1))
    return Term("comparison", field.start(), value[0], field[0], operator[1], False, at), value.end()


def _quoted(query: str, at: int) -> tuple[str, int]:
    found = _QUOTED.match(query, at)
    if found is None:
        raise QueryError("this quote has no end", at)
    return _ESCAPED.sub(r"\1", found[1]), found.end()
