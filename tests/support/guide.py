"""A guide as its reader follows it: its blocks for a shell, cut into what one enters at a time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.documents import ROOT, Document

_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<) *'?(\w+)'?")
_COMMENT = re.compile(r"(?<=\S)\s+# (.+)$")


@dataclass(frozen=True, slots=True)
class Step:
    """What a reader enters before the shell answers.

    Attributes:
        typed: One command with its comment; several lines where a command goes over several.
        comment: What the guide says beside it; empty without one.
    """

    typed: str
    comment: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block of commands below a heading."""

    heading: str
    steps: tuple[Step, ...]


class Guide:
    """Hands out the blocks of a guide in their order, with the reader's own values in place of the examples.

    Args:
        path: From the root of the repository.
        values: What the guide says to replace, and by what.
    """

    def __init__(self, path: str, values: dict[str, str]) -> None:
        self.values = values
        self._left = list(blocks(Document(ROOT / path)))

    def block(self, heading: str) -> tuple[Step, ...]:
        """Return the steps of the next block, which must be below this heading."""
        assert self._left, "the guide has no more commands"
        block = self._left.pop(0)
        assert block.heading == heading, f"the next commands of the guide are below {block.heading}"
        return tuple(Step(self._own(step.typed), step.comment) for step in block.steps)

    @property
    def left(self) -> list[Block]:
        """The blocks that were not asked for."""
        return self._left

    def _own(self, typed: str) -> str:
        for example, value in self.values.items():
            typed = typed.replace(example, value)
        return typed


def blocks(document: Document) -> Iterator[Block]:
    """Give the blocks for a shell with the headings above them."""
    for heading, text in document.shell_blocks():
        yield Block(heading, tuple(steps(text)))


def steps(text: str) -> Iterator[Step]:
    """Cut the text of a block into commands; a here-document and a line that ends in a backslash go on."""
    lines: list[str] = []
    end = ""
    for line in text.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        lines.append(line)
        if end:
            end = "" if line == end else end
        elif found := _HERE_DOCUMENT.search(line):
            end = found[1]
        if not end and not line.endswith("\\"):
            comment = _COMMENT.search(line)
            yield Step("\n".join(lines), comment[1].strip() if comment else "")
            lines = []
    assert not lines, f"a command that does not end: {lines}"
