"""The guides exist in English and in Chinese, with the same sections and the same commands."""

import re
import unicodedata
from pathlib import Path

from tests.support.documents import ROOT, Document
from tests.support.every import for_every

GUIDES = {
    "README.md": "README.zh-CN.md",
    "docs/README.md": "docs/zh/README.md",
    "docs/faq.md": "docs/zh/faq.md",
    "docs/operating/console.md": "docs/zh/console.md",
    "docs/operating/models.md": "docs/zh/models.md",
    "docs/operating/ownership.md": "docs/zh/activation.md",
    "docs/operating/reminders.md": "docs/zh/reminders.md",
    "docs/operating/quick-start.md": "docs/zh/quick-start.md",
    "docs/operating/troubleshooting.md": "docs/zh/troubleshooting.md",
    "docs/operating/upgrade.md": "docs/zh/upgrade.md",
}
"""Each guide in English, and the same one in Chinese."""
INDEXES = {"docs/README.md"}
"""Lists all documents; the Chinese one lists those that exist in Chinese."""
WIDEST_LINE = 120
"""Columns of a terminal; a Chinese character takes two."""

_ZONE = re.compile(r"[A-Z][a-z]+/[A-Z][a-z]+")

PAIRS = [(Document(ROOT / english), Document(ROOT / chinese)) for english, chinese in GUIDES.items()]
SAME = [pair for pair in PAIRS if str(pair[0]) not in INDEXES]
CHINESE = [chinese for _, chinese in PAIRS]


def test_every_chinese_document_is_a_guide_with_an_english_one() -> None:
    found = {str(path.relative_to(ROOT)) for path in (ROOT / "docs/zh").rglob("*.md")}
    assert found == {name for name in GUIDES.values() if name.startswith("docs/zh/")}


@for_every("pair", PAIRS)
def test_each_guide_leads_to_the_other_language(pair: tuple[Document, Document]) -> None:
    for one, other in (pair, pair[::-1]):
        assert other.path in _targets(one), f"{one} has no link to {other}"


@for_every("document", CHINESE)
def test_the_chinese_index_leads_to_each_chinese_guide(document: Document) -> None:
    index = Document(ROOT / "docs/zh/README.md")
    assert document.path in {*_targets(index), index.path, ROOT / "README.zh-CN.md"}


@for_every("document", CHINESE)
def test_a_link_to_a_guide_stays_in_its_language(document: Document) -> None:
    own = _targets(document) & {ROOT / english for english in GUIDES}
    assert own <= {english.path for english, chinese in PAIRS if chinese == document}


@for_every("pair", SAME)
def test_both_have_the_same_sections(pair: tuple[Document, Document]) -> None:
    english, chinese = (re.findall(r"^#+(?= )", document.prose, re.MULTILINE) for document in pair)
    assert english == chinese


@for_every("pair", SAME)
def test_both_have_the_same_commands(pair: tuple[Document, Document]) -> None:
    english, chinese = ([_without_texts(words) for words in document.commands()] for document in pair)
    assert english == chinese


@for_every("pair", SAME)
def test_both_name_the_same_settings_and_log_lines(pair: tuple[Document, Document]) -> None:
    english, chinese = map(_names, pair)
    assert english == chinese


@for_every("document", CHINESE)
def test_a_line_of_chinese_prose_fits_into_an_editor(document: Document) -> None:
    assert [line for line in document.prose_lines() if _columns(line) > WIDEST_LINE] == []


def _targets(document: Document) -> set[Path]:
    files = (link.partition("#")[0] for link in document.links() if ":" not in link)
    return {(document.path.parent / file).resolve() for file in files if file}


def _without_texts(words: list[str]) -> list[str]:
    """Leave out what a user says, which is in the guide's own language."""
    return [word for word in words if word.isascii() and " " not in word]


def _names(document: Document) -> set[str]:
    return {_ZONE.sub("ZONE", span) for span in document.spans() if span.isascii()}


def _columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)
