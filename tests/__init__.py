"""Tests; a package, so that `tests.support` is ours wherever it is imported from."""
