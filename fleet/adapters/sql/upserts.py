"""Inserts that meet rows which are there already: both kinds of database have a form of their own for them."""

from collections.abc import Iterable

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert


def insert_if_absent(table: Table, *, is_sqlite: bool) -> Insert:
    """Return an insert that skips rows whose key is taken."""
    if is_sqlite:
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()


def insert_or_replace(table: Table, *, is_sqlite: bool) -> Insert:
    """Return an insert that replaces the other columns of a row whose primary key is taken."""
    keys, names = list(table.primary_key), [column.name for column in table.c if not column.primary_key]
    if is_sqlite:
        one = sqlite.insert(table)
        return one.on_conflict_do_update(index_elements=keys, set_={name: one.excluded[name] for name in names})
    other = postgresql.insert(table)
    return other.on_conflict_do_update(index_elements=keys, set_={name: other.excluded[name] for name in names})


def insert_or_add(table: Table, names: Iterable[str], *, is_sqlite: bool) -> Insert:
    """Return an insert that adds to the named columns of a row whose primary key is taken."""
    keys = list(table.primary_key)
    if is_sqlite:
        one = sqlite.insert(table)
        return one.on_conflict_do_update(
            index_elements=keys, set_={name: table.c[name] + one.excluded[name] for name in names}
        )
    other = postgresql.insert(table)
    return other.on_conflict_do_update(
        index_elements=keys, set_={name: table.c[name] + other.excluded[name] for name in names}
    )
