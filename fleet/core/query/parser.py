"""Reads the text of a query.

The grammar is a subset of https://google.aip.dev/160. There OR binds tighter than AND, which surprises most users, so a
query that mixes the two needs parentheses here.
"""

from collections.abc import Mapping
from datetime import datetime

from fleet.core.query.conditions import EVERYTHING, AllOf, AnyOf, Condition, FreeText, Negation, QueryError
from fleet.core.query.fields import Field, comparison
from fleet.core.query.terms import Term, split

MOST_TERMS = 60
"""Terms of a query, with parentheses: a bound for the time of a search."""
DEEPEST = 12
"""Parentheses and negations within each other."""


def parse(query: str, fields: Mapping[str, Field], now: datetime) -> Condition:
    """Return the condition that a query states; an empty one states nothing.

    Args:
        query: For instance `board:bread-* AND tag.site=berlin AND firmware<2.5 AND online`.
        fields: By name.
        now: The time from which `-7d` counts.

    Raises:
        QueryError: The query cannot be read; it says what is wrong, and where.
    """
    terms = list(split(query))
    if len(terms) > MOST_TERMS:
        raise QueryError(f"a query has at most {MOST_TERMS} terms", terms[MOST_TERMS].position)
    return _Reader(terms, fields, now, len(query)).whole() if terms else EVERYTHING


class _Reader:
    """Reads terms from left to right."""

    def __init__(self, terms: list[Term], fields: Mapping[str, Field], now: datetime, end: int) -> None:
        self._terms, self._fields, self._now, self._end = terms, fields, now, end
        self._at = 0

    def whole(self) -> Condition:
        condition = self._sequence(0)
        if self._at < len(self._terms):
            raise QueryError("this parenthesis was never opened", self._terms[self._at].position)
        return condition

    def _next(self) -> Term | None:
        return self._terms[self._at] if self._at < len(self._terms) else None

    def _sequence(self, depth: int) -> Condition:
        """Read parts up to a closing parenthesis or the end; all are joined in the same way."""
        parts, join = [self._part(depth)], ""
        while (term := self._next()) is not None and term.kind != ")":
            # Parts without a word between them are joined by AND.
            kind = term.kind if term.kind in ("AND", "OR") else "AND"
            if join and kind != join:
                raise QueryError("put parentheses around the parts of AND or of OR", term.position)
            join = kind
            if term.kind in ("AND", "OR"):
                self._at += 1
            parts.append(self._part(depth))
        if len(parts) == 1:
            return parts[0]
        return AnyOf(tuple(parts)) if join == "OR" else AllOf(tuple(parts))

    def _part(self, depth: int) -> Condition:
        term = self._next()
        if term is None:
            raise QueryError("a condition is missing at the end", self._end)
        if depth > DEEPEST:
            raise QueryError(f"at most {DEEPEST} parentheses may be open", term.position)
        self._at += 1
        if term.kind == "NOT":
            return Negation(self._part(depth + 1))
        if term.kind == "(":
            return self._enclosed(term, depth)
        if term.kind == "comparison":
            return comparison(term, self._fields, self._now)
        if term.kind == "text":
            return self._word(term)
        raise QueryError(f"a condition is missing before {term.kind!r}", term.position)

    def _enclosed(self, opening: Term, depth: int) -> Condition:
        inside = self._sequence(depth + 1)
        if self._next() is None:
            raise QueryError("this parenthesis is never closed", opening.position)
        self._at += 1
        return inside

    def _word(self, term: Term) -> Condition:
        field = self._fields.get(term.text)
        if field is None or term.quoted or ":" in field.operators or "<" in field.operators:
            return FreeText(term.text)
        return comparison(term._replace(field=term.text, operator="=", text="true"), self._fields, self._now)
