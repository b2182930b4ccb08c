"""The site of the documents shows every page, and links lead to the same places as on the code host.

`scripts/docs-site`, which CI runs, builds it and checks links and anchors once more.
"""

import importlib.util
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.documents import ROOT, Document, documents

MADE_FOR_THE_REPOSITORY = {"fleet", "tests", ".github"}
"""Folders whose documents the site does not show."""
LIST = """\
1. First:

   ```sh
   fleet up
   ```

2. Second
   - inner
     line

Text

- bullet
  - inner
"""
INDENTED = """\
1. First:

    ```sh
    fleet up
    ```

2. Second
    - inner
      line

Text

- bullet
    - inner
"""


@pytest.fixture(scope="module")
def stage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stage", ROOT / "docs/site/stage.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def staged(stage: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    stage.stage(folder)
    return folder


@pytest.fixture(scope="module")
def navigation(staged: Path) -> list[dict[str, Any]]:
    return list(tomllib.loads((staged / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])


def test_every_document_stands_once_in_the_navigation(navigation: list[dict[str, Any]]) -> None:
    shown = [page for tab in navigation for entries in tab.values() for entry in entries for page in entry.values()]
    assert len(shown) == len(set(shown))
    written = {str(one) for one in documents() if one.path.relative_to(ROOT).parts[0] not in MADE_FOR_THE_REPOSITORY}
    assert set(shown) == written


def test_every_document_is_in_an_index(navigation: list[dict[str, Any]]) -> None:
    """A page that no index names is one that nobody finds."""
    assert [list(tab) for tab in navigation] == [["Home"], ["Operate"], ["Extend"], ["中文"], ["Decisions"]]


def test_chinese_pages_have_a_tab_of_their_own(navigation: list[dict[str, Any]]) -> None:
    (tab,) = (entries for one in navigation for title, entries in one.items() if title == "中文")
    pages = {page for entry in tab for page in entry.values()}
    assert pages == {"README.zh-CN.md", *(f"docs/zh/{path.name}" for path in (ROOT / "docs/zh").glob("*.md"))}


def test_every_link_leads_to_a_page_or_to_the_code_host(staged: Path, stage: ModuleType) -> None:
    for path in (staged / "pages").rglob("*.md"):
        for link in Document(path).links():
            if link.startswith(stage.HOST):
                assert (ROOT / re.sub(r"^/(blob|tree)/main/", "", link.removeprefix(stage.HOST))).exists(), link
            elif not re.match(r"[a-z]+:|#", link):
                target = (path.parent / unquote(link).partition("#")[0]).resolve()
                assert target.is_file(), f"{path.relative_to(staged)}: {link}"


def test_what_belongs_to_an_item_is_indented_by_four(stage: ModuleType) -> None:
    """The Markdown of the site takes less for text after the list, which would then begin again with 1."""
    assert stage.rewrite(LIST, Path("docs/x.md"), set()) == INDENTED


def test_lists_begin_after_a_blank_line(stage: ModuleType) -> None:
    """The site takes them for text otherwise."""
    for document in documents():
        lines = document.prose.splitlines()
        for before, line in pairwise(lines):
            if re.match(r"(- |1\. )", line) and re.match(r"[^\s|>#-]", before):
                assert re.match(r"\d+\. ", before), f"{document}: {line}"


def test_two_lines_of_chinese_are_joined_without_a_space(stage: ModuleType) -> None:
    assert (
        stage.rewrite("设备已经启动，\n然后连接。\n\n- 一\n", Path("docs/x.md"), set())
        == "设备已经启动，然后连接。\n\n- 一\n"
    )
