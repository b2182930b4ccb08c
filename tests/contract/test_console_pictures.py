"""Every page of the console has a picture in the documents, small enough for a repository."""

import re

import pytest

from fleet.roles.control.routes.console import CONSOLE
from tests.support.console_pictures import FOLDER, MOST_BYTES, SHOWN, picture_of, pictures
from tests.support.console_places import DIALOGS, LOCALES, PLACES, Language
from tests.support.documents import ROOT

GUIDES: dict[Language, str] = {"en": "docs/operating/console.md", "zh": "docs/zh/console.md"}
FURTHER = {"parts/job-wizard.js", "parts/feedback.js"}
"""The wizard asks only after three steps, and its own test goes there; feedback.js is what all dialogs are made of."""


def test_there_are_exactly_these_pictures_and_they_are_small() -> None:
    found = sorted(path for path in FOLDER.iterdir() if path.is_file())
    assert found == sorted(pictures()), (
        "CONSOLE_PICTURES=docs/operating/console scripts/test --slow tests/e2e/console/test_console_pictures.py"
    )
    assert sum(path.stat().st_size for path in found) <= MOST_BYTES


def test_every_page_of_the_menu_has_a_place_and_a_picture() -> None:
    menu = re.findall(r'\["([a-z]+)", "[a-z]+", \[', (CONSOLE / "core/shell.js").read_text(encoding="utf-8"))
    assert len(menu) > 15
    assert PLACES["start-device"].startswith("#/start/"), "the picture of the page that leads through the steps"
    shown = {PLACES[name].partition("?")[0] for name in SHOWN if name in PLACES} | {"#/start"}
    assert {"#/" if page == "overview" else f"#/{page}" for page in menu} <= shown


@pytest.mark.parametrize("language", LOCALES)
def test_the_guide_leads_to_every_picture_of_its_language(language: Language) -> None:
    text = (ROOT / GUIDES[language]).read_text(encoding="utf-8")
    missing = [name for name in SHOWN if f"console/{picture_of(name, language).name})" not in text]
    assert missing == []


def test_every_dialog_is_looked_at() -> None:
    files = {path.relative_to(CONSOLE).as_posix(): path.read_text(encoding="utf-8") for path in CONSOLE.rglob("*.js")}
    asking = {name for name, text in files.items() if re.search(r"<\$\{(FormDialog|Dialog|Confirm)\}", text)}
    assert asking == {one.file for one in DIALOGS} | FURTHER
