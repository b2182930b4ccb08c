"""Damaging what is valid: documents, bytes, texts. All choices come from the given source, so an input can be repeated.

Hypothesis hands in a source that it can shrink, the campaign a plain `random.Random`.
"""

import copy
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

SEEDS = Path(__file__).parent / "seeds"


class Raw(str):
    """JSON text that stands in a document as it is."""

    __slots__ = ()


@cache
def seeds(name: str) -> tuple[str, ...]:
    """Return the lines of a seed file."""
    return tuple((SEEDS / name).read_text(encoding="utf-8").splitlines())


def document(random: Random, name: str) -> Any:
    """Return a fresh document of a seed file."""
    return json.loads(random.choice(seeds(name)))


SMALL: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.0, 1.5, -0.0, 60, 2**31 - 1, 2**31, 2**53, 2**63, -(2**63), 10**30, 1e308),
    *("", " ", "x", "true", "1", "1.0", "-7", "NaN", "\u0000", "😀", "hello", "listen", "__proto__", "٣"),
    *([], {}, [None], [[]], {"": None}, {"type": "hello"}, [1, "a", None], [{"type": "text"}]),
    *map(Raw, ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1E-999", "01", "+1", "0x10", "nul", "'x'", "")),
    *map(
        Raw, ('"\\ud800"', '"\\udc00\\ud800"', '"a\\ud83d"', '"\\u00"', '"\\x"', '"\x01"', '"say "hi" now"', '"a\nb"')
    ),
)
LARGE: tuple[Callable[[], Any], ...] = (
    lambda: Raw("9" * 4300),
    lambda: Raw("-" + "9" * 5000),
    lambda: Raw("0." + "3" * 5000 + "e5000"),
    lambda: "9" * 5000,
    lambda: "a" * 70_000,
    lambda: "\\" * 3000 + '"',
    lambda: Raw("[" * 150 + "]" * 150),
    lambda: Raw("[" * 250 + "]" * 250),
    lambda: Raw("[" * 990 + "]" * 990),
    lambda: Raw('{"a":' * 180 + "1" + "}" * 180),
    lambda: Raw('{"a":' * 600 + "1" + "}" * 600),
    lambda: Raw("[" * 100_000),
    lambda: Raw("[" * 100_000 + "]" * 100_000),
    lambda: Raw('{"a":' * 40_000),
    lambda: [None] * 5000,
    lambda: {f"k{number}": number for number in range(2000)},
)
_LARGE_ODDS = 0.02
_LONGEST = 400_000
"""Characters of a document: more than any transport lets through."""


def value(random: Random) -> Any:
    """Return any JSON value, rarely a large one."""
    if random.random() < _LARGE_ODDS:
        return random.choice(LARGE)()
    chosen = random.choice(SMALL)
    return copy.deepcopy(chosen) if isinstance(chosen, (list, dict)) else chosen


def write(node: Any) -> str:
    """Return a document as JSON text."""
    if isinstance(node, Raw):
        return str(node)
    if isinstance(node, dict):
        return "{" + ",".join(f"{write(key)}:{write(member)}" for key, member in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(write, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key or index) of a document; the root itself stands in a list."""
    found: list[tuple[Any, Any]] = []
    left: list[Any] = [root]
    while left:
        container = left.pop()
        members = list(container.items() if isinstance(container, dict) else enumerate(container))[:50]
        found += [(container, key) for key, _ in members]
        left += [member for _, member in members if isinstance(member, (dict, list))]
    return found


def _replace(random: Random, container: Any, key: Any) -> None:
    container[key] = value(random)


def _wrap(random: Random, container: Any, key: Any) -> None:
    container[key] = random.choice(([container[key]], {"": container[key]}, str(container[key])))


def _drop(_: Random, container: Any, key: Any) -> None:
    del container[key]


def _add(random: Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[random.choice((Raw('"\\ud800"'), "", "x" * 300, "TYPE", "id", "error", "text"))] = value(random)
    else:
        container.insert(key, value(random))


def _repeat(random: Random, container: Any, key: Any) -> None:
    """Add the key a second time; `Raw` text makes it another key for Python."""
    if isinstance(container, dict):
        container[Raw(json.dumps(key, ensure_ascii=False) + " " * random.randrange(1, 4))] = value(random)
    else:
        container += [container[key]] * random.choice((1, 3, 100))


_CHANGES = (_replace, _replace, _replace, _wrap, _drop, _add, _repeat)


def damage_document(random: Random, root: Any) -> str:
    """Return a document as JSON text in which up to three things are wrong."""
    outer = [root]
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        places = _places(outer)
        if not places:
            break
        random.choice(_CHANGES)(random, *random.choice(places))
    return ",".join(map(write, outer))[:_LONGEST]


_BAD_BYTES = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf8\x88\x80\x80\x80",
    b"\x00",
    b'"',
    b"\\",
    b"}",
    b"]",
    b"{",
    b"[",
    b",",
)


def damage_bytes(random: Random, data: bytes, other: bytes = b"") -> bytes:
    """Return bytes with one thing wrong: a flip, a cut, something more, a piece twice, or the rest of another input."""
    at = random.randrange(len(data) + 1)
    match random.randrange(8):
        case 0 if at < len(data):
            return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + random.choice(_BAD_BYTES) + data[at:]
        case 3:
            return data[:at] + data[at + random.randrange(1, 9) :]
        case 4:
            return data[:at] + random.randbytes(random.randrange(1, 9)) + data[at:]
        case 5:
            return data[:at] + data[max(0, at - random.randrange(1, 40)) :]
        case 6:
            return data[:at] + other[random.randrange(len(other) + 1) :]
        case _:
            return data[at:]


def json_bytes(random: Random, name: str) -> bytes:
    """Return a damaged JSON document of a seed file; now and then its bytes are damaged too, or all is noise."""
    kind = random.randrange(16)
    if kind == 0:
        return random.randbytes(random.randrange(64))
    if kind == 1:
        return write(value(random)).encode(errors="surrogatepass")
    data = damage_document(random, document(random, name)).encode(errors="surrogatepass")
    if kind < 6:
        data = damage_bytes(random, data, random.choice(seeds(name)).encode())
    if kind == 6:
        data = data.decode(errors="replace").encode(random.choice(("utf-16", "utf-8-sig", "utf-32-le")))
    return data


def chunks(random: Random, data: Sequence[Any], most: int = 12) -> list[Any]:
    """Cut a sequence into pieces at random places."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(most)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


_TOKENS = (
    *(
        "。",
        "！",
        "？",
        "…",
        ".",
        "!",
        "?",
        ",",
        ";",
        ":",
        "，",
        "、",
        "\n",
        " ",
        "\t",
        "\u3000",
        "\u2028",
        "a",
        "Z",
        "中",
        "7",
    ),
    *(
        "```",
        "`",
        "**",
        "_",
        "~~",
        "#",
        "- ",
        "1. ",
        "|",
        "[",
        "]",
        "(",
        ")",
        "](",
        "![",
        "<",
        ">",
        "</a",
        "&#",
        "&amp;",
    ),
    *(
        "https://",
        "www.",
        "e.g.",
        "Dr.",
        "no. ",
        "3.14",
        "😀",
        "👨‍👩‍👧",
        "\u200d",
        "\ufe0f",
        "\u0301",
        "\x00",
        "\ud800",
        "”",
        "）",
    ),
)


def damage_text(random: Random, text: str) -> str:
    """Return a text in which tokens that mean something are put, doubled or taken away."""
    for _ in range(random.randrange(6)):
        at = random.randrange(len(text) + 1)
        token = random.choice(_TOKENS)
        count = random.choice((1, 1, 1, 3, 130)) if random.random() < 0.2 else 1
        text = random.choice((text[:at] + token * count + text[at:], text[:at] + text[at + len(token) :]))
    return text


def text(random: Random) -> str:
    """Return a text as a model might write it, damaged; or a soup of tokens; rarely a long run of one thing."""
    kind = random.random()
    if kind < 0.005:
        return "Look: ```\n" + "x = 1\n" * random.choice((330, 340, 1000)) + damage_text(random, "`` ```\nDone.")
    if kind < 0.01:
        return (random.choice(_TOKENS) + random.choice(_TOKENS)) * random.choice((500, 3000))
    if kind < 0.4:
        return "".join(random.choice(_TOKENS) for _ in range(random.randrange(40)))
    return damage_text(random, random.choice(seeds("texts.txt")).replace("\\n", "\n"))
