"""Validation of arguments against a JSON Schema from an untrusted author.

The verdict on a value is valid, invalid or unknown. Unknown means that only a regular expression, another document or
another dialect of JSON Schema could decide; such a value passes, and the tool's owner validates it. This module
evaluates no pattern, fetches no reference and compiles no schema; a budget of steps bounds every validation
(docs/adr/0022-tool-arguments.md).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import JsonValue

from fleet.core.schemas.keywords import ANNOTATIONS, CHECKS
from fleet.core.schemas.verdict import Fault, Path, SchemaPlace, Verdict, both

MOST_STEPS = 5_000
"""Keywords, members, items and choices that are checked for one call; at worst 22 ms of CPU time."""
DEEPEST = 40
"""Nesting levels of schemas, references included."""

_OTHER_DOCUMENT = ("$id", "id", "$schema")


class SchemaValidator:
    """Validates one call's arguments, perhaps several times; all validations share one budget of steps.

    Args:
        schema: The original schema.
        furthest: The largest integer that the tool's owner can read, with either sign.
    """

    def __init__(self, schema: Mapping[str, Any], furthest: int) -> None:
        self.root = schema
        self.furthest = furthest
        self.left = MOST_STEPS
        """Steps that remain; below 0 every further verdict is unknown."""

    def find_faults(self, arguments: Mapping[str, JsonValue]) -> list[Fault]:
        """Return the certain faults; never raises."""
        return self.apply(self.root, arguments, (), 0) or []

    def spend(self, steps: int = 1) -> bool:
        self.left -= steps
        return self.left >= 0

    def apply(self, schema: object, value: object, path: Path, depth: int) -> Verdict:
        """Return the verdict of one schema on one value."""
        if schema is True:
            return []
        if schema is False:
            return [Fault(path, {"not": {}})]
        if not isinstance(schema, dict) or depth > DEEPEST or self._is_another_document(schema):
            return None
        if value is None and schema.get("nullable") is True:  # OpenAPI, Gemini
            return []
        return both(self._verdicts(schema, value, SchemaPlace(schema, path, depth)))

    def _verdicts(self, schema: Mapping[str, Any], value: object, place: SchemaPlace) -> Iterable[Verdict]:
        for word, rule in schema.items():
            if not self.spend():
                yield None
                return
            if check := CHECKS.get(word):
                yield check(self, rule, value, place)
            elif word not in ANNOTATIONS and not word.startswith("x-"):
                yield None

    def _is_another_document(self, schema: Mapping[str, Any]) -> bool:
        """Whether references in a schema may have another root, or its keywords another meaning."""
        return schema is not self.root and any(word in schema for word in _OTHER_DOCUMENT)
