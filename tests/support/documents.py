"""What stands in the documents: links, headings, and the commands of their code blocks."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OTHERS = {".git", ".venv", "node_modules", "build", "out", ".pytest_cache", ".ruff_cache", ".mypy_cache"}

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_TABLE_LINE = re.compile(r" *\|")
_ADDRESS = re.compile(r"\]\([^()\s]+\)")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_PICTURE = re.compile(r'<img [^>]*src="([^"]+)"')
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_HEADING_OR_FENCE = re.compile(rf"(?:{_HEADING.pattern})|(?:{_FENCE.pattern})", re.MULTILINE | re.DOTALL)
_SCRIPT = re.compile(r"scripts/[a-z_-]+\b")
_PATH = re.compile(r"(?:/opt/fleet/|\./)?((?:deploy|docs|fleet|mosquitto|scripts|tests)/[\w./@-]+)")
_MADE = re.compile(r"/build/|\.venv/")
"""What a build or an installation makes below the root."""
_SHELLS = {"sh", "bash", "console", "shell"}
_ENDS = frozenset(";&|()<>")
_ASSIGNMENT = re.compile(r"^\w+=")
_LAUNCHERS = {"docker", "kubectl", "sudo", "nice", "exec", "runuser"}
"""Programs that run another one, which is named further on."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the repository."""

    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _FENCE.sub("", self.text)

    def prose_lines(self) -> Iterator[str]:
        """Give the lines of its sentences, without tables, pictures, and the addresses of links."""
        for line in self.prose.splitlines():
            if not _TABLE_LINE.match(line) and not line.startswith(("[![", "[<", "<")):
                yield _ADDRESS.sub("]", line)

    def cells(self) -> Iterator[str]:
        """Give the cells of the tables as a reader sees them, without the addresses of links."""
        for line in self.prose.splitlines():
            if _TABLE_LINE.match(line):
                yield from (cell.strip() for cell in _ADDRESS.sub("]", line).strip().strip("|").split(" | "))

    def links(self) -> list[str]:
        """Return where it leads to, without what is only shown as code."""
        text = _SPAN.sub("", self.prose)
        return [*_LINK.findall(text), *_PICTURE.findall(text)]

    def anchors(self) -> set[str]:
        """Return what a link into it may name, as GitHub makes it of headings."""
        seen: Counter[str] = Counter()
        found = set()
        for heading in _HEADING.findall(self.prose):
            slug = _slug(heading)
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return found

    def shell_blocks(self) -> Iterator[tuple[str, str]]:
        """Give the text of each code block for a shell, after the heading above it."""
        heading = ""
        for title, language, block in _HEADING_OR_FENCE.findall(self.text):
            heading = title or heading
            if language in _SHELLS:
                yield heading, block

    def commands(self) -> Iterator[list[str]]:
        """Give the words of each `fleet` command in its code blocks for a shell, without `fleet`."""
        return (words for program, words in self._programs() if program == "fleet")

    def scripts(self) -> Iterator[tuple[str, list[str]]]:
        """Give each script of ours that a code block or a sentence runs, and the words after its name."""
        yield from (found for found in self._programs() if found[0] != "fleet")
        for span in self.spans():
            if _SCRIPT.match(span) and "…" not in span:
                yield from _programs(span)

    def paths(self) -> set[str]:
        """Return the paths of the repository that its code blocks for a shell name, relative to its root."""
        words = {word for _, block in self.shell_blocks() for word in re.split(r"[\s\"'=;]+", block)}
        return {found[1] for word in words if (found := _PATH.fullmatch(word)) and not _MADE.search(word)}

    def _programs(self) -> Iterator[tuple[str, list[str]]]:
        for _, block in self.shell_blocks():
            yield from _programs(block)

    def spans(self) -> Iterator[str]:
        """Give what is set as code within its sentences, a span that is broken over two lines too."""
        return (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", self.prose))


def documents() -> list[Document]:
    """Return every document of the repository."""
    found = sorted(ROOT.rglob("*.md"))
    return [Document(path) for path in found if not _OTHERS & set(path.relative_to(ROOT).parts)]


def _slug(heading: str) -> str:
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


def _programs(block: str) -> Iterator[tuple[str, list[str]]]:
    for line in block.replace("\\\n", " ").splitlines():
        try:
            words = list(_lexer(line))
        except ValueError:
            continue  # a quotation over several lines, which no command of fleet's has
        command: list[str] = []
        for word in (*words, ";"):
            if not set(word) <= _ENDS:
                command.append(word)
                continue
            if (found := _program(command)) is not None:
                yield found
            command = []


def _lexer(line: str) -> shlex.shlex:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return lexer


def _program(words: list[str]) -> tuple[str, list[str]] | None:
    """Return `fleet` or the script that a simple command runs, and what follows it."""
    start = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    words = words[start:]
    if not words:
        return None
    for at, word in enumerate(words if words[0] in _LAUNCHERS else words[:1]):
        named = word == "fleet" or word.endswith("bin/fleet")
        option = at > 0 and words[at - 1].startswith("-") and words[at - 1] != "--"
        if (named or _SCRIPT.fullmatch(word)) and not option:
            return "fleet" if named else word, words[at + 1 :]
    return None
