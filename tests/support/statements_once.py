"""Compiles each statement once: SQLAlchemy does so for every engine, and a test has one or three."""

from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

_MOST = 5_000


class _Shared(LRUCache[Any, Any]):
    """Compiled statements, for all engines whose dialects write the same text and read the same values."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_alike(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_alike(key), value)


def _alike(key: Any) -> Any:
    """Return the key with what counts of the dialect in place of it."""
    dialect, *statement = key
    reads, version = getattr(dialect, "_json_deserializer", None), dialect.server_version_info
    return (type(dialect), reads, version, *statement)


def compile_statements_once(patch: pytest.MonkeyPatch) -> None:
    """Let engines that are made while this holds share their compiled statements."""
    begin, shared = Engine.__init__, _Shared(_MOST)

    def begin_sharing(engine: Engine, *words: Any, **options: Any) -> None:
        begin(engine, *words, **options)
        engine._compiled_cache = shared

    patch.setattr(Engine, "__init__", begin_sharing)
