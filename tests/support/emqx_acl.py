"""EMQX's topic rules, read and applied as EMQX does it (emqx_authz_rule): the first rule that fits decides."""

import re
from pathlib import Path
from typing import Any

_TOKEN = re.compile(r'\s+|%[^\n]*|"((?:[^"\\]|\\.)*)"|([a-z][A-Za-z0-9_]*|\d+)|([{}\[\],.])')


def read_terms(path: Path) -> list[Any]:
    """Return the Erlang terms of a file: tuples, lists, strings, numbers and atoms (as text with a leading `'`)."""
    tokens = list(_tokens(path.read_text()))
    terms: list[Any] = []
    while tokens:
        terms.append(_term(tokens))
        assert tokens.pop(0) == ".", "each term ends with a full stop"
    return terms


def allows(rules: list[Any], client: dict[str, Any], action: dict[str, Any], topic: str) -> bool:
    """Whether a client may do this; `action` has `type`, `qos`, and `retain` if it publishes."""
    for rule in rules:
        permission, who, what, filters = rule if len(rule) == 4 else (rule[0], "'all", "'all", ["#"])
        if _does(what, action) and _is(who, client) and any(_fits(topic, _filled(one, client)) for one in filters):
            return bool(permission == "'allow")
    return False


def _tokens(text: str) -> Any:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found, f"no Erlang term: {text[at : at + 20]!r}"
        at = found.end()
        if found[1] is not None:
            yield ("text", found[1])
        elif found[2]:
            yield int(found[2]) if found[2].isdigit() else f"'{found[2]}"
        elif found[3]:
            yield found[3]


def _term(tokens: list[Any]) -> Any:
    first = tokens.pop(0)
    if first not in ("{", "["):
        return first[1] if isinstance(first, tuple) else first
    items: list[Any] = []
    while tokens[0] not in ("}", "]"):
        items.append(_term(tokens))
        if tokens[0] == ",":
            tokens.pop(0)
    assert tokens.pop(0) == {"{": "}", "[": "]"}[first]
    return tuple(items) if first == "{" else items


def _is(who: Any, client: dict[str, Any]) -> bool:
    if who == "'all":
        return True
    field, wanted = who
    value = client[field.removeprefix("'")]
    return bool(re.search(wanted[1], value)) if isinstance(wanted, tuple) else value == wanted


def _does(what: Any, action: dict[str, Any]) -> bool:
    kind, options = what if isinstance(what, tuple) else (what, [])
    if kind not in ("'all", f"'{action['type']}"):
        return False
    for name, wanted in options:
        value = action[name.removeprefix("'")]
        if name == "'retain" and wanted != f"'{str(value).lower()}":
            return False
        if name == "'qos" and value not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def _filled(pattern: str, client: dict[str, Any]) -> str:
    """Return a filter with its placeholders filled; one that the client lacks fits nothing."""

    def value(found: re.Match[str]) -> str:
        here: Any = client
        for part in found[1].split("."):
            here = here.get(part, {}) if isinstance(here, dict) else {}
        return here if isinstance(here, str) else "\0"

    return re.sub(r"\$\{([\w.]+)\}", value, pattern)


def _fits(topic: str, pattern: str) -> bool:
    # A filter that is subscribed to is compared like a topic: its `#` fits a `+`, so `+` in rules is for writers only.
    words, wanted = topic.split("/"), pattern.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for at, one in enumerate(wanted):
        if one == "#":
            return True
        if at >= len(words) or one not in ("+", words[at]):
            return False
    return len(words) == len(wanted)
