"""Compares texts of rows with the values of queries."""

import re

from sqlalchemy import ColumnElement

Clause = ColumnElement[bool]


def text_meets(column: ColumnElement[str], value: str, operator: str) -> Clause:
    """Return whether a text is equal to a value (`=`), or contains it or has its form (`:`)."""
    if operator == "=":
        return column == value
    if "*" in value:
        return column.ilike("%".join(map(escaped, value.split("*"))), escape="\\")
    return column.ilike(f"%{escaped(value)}%", escape="\\")


def escaped(value: str) -> str:
    """Return a value for LIKE, in which its characters stand for themselves."""
    return re.sub(r"([%_\\])", r"\\\1", value)
