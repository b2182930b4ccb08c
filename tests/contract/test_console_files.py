"""The files of the console: complete in both languages, small, and made of what their packages have."""

import functools
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fleet.roles.control.routes.console import CONSOLE, pack, read_files
from tests.support.documents import ROOT
from tests.support.every import for_every
from tests.support.npm_package import NoPackage, read_package

LARGEST = 150 * 1024
OWN = sorted(path for path in CONSOLE.rglob("*.js") if path.parent.name != "vendor")
PACKAGES: list[dict[str, Any]] = json.loads((CONSOLE / "vendor/packages.json").read_text(encoding="utf-8"))
LANGUAGES = ("en", "zh")
_KEY = re.compile(r'"([a-z][\w-]*(?:\.[\w-]+)*)"')
_BUILT = re.compile(r"`([a-z][\w-]*\.[\w.-]*\$\{[^`]*\}[\w.-]*)`")
"""Keys that begin with a word: what begins with a value could be any text."""
_ASKED = re.compile(r'\bt\(\s*"([\w.-]+)"')
_EVENT = re.compile(r"`([a-z]+\.[a-z]+)`")
_READ_MODULES = """
import { readFileSync } from "node:fs";
import { SourceTextModule } from "node:vm";
for (const [identifier, source] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  try { new SourceTextModule(source, { identifier }); } catch (error) { console.log(`${identifier}: ${error}`); }
}
"""
_IMPORT = re.compile(r'(?:from|import)\s*\(?\s*"([^"]+)"')


@functools.cache
def catalogue(language: str) -> dict[str, str]:
    """Return the texts of a language, in the order of the file."""
    texts: dict[str, list[str]] = json.loads((CONSOLE / "texts.json").read_text(encoding="utf-8"))
    assert {len(text) for text in texts.values()} == {len(LANGUAGES)}
    return {key: text[LANGUAGES.index(language)] for key, text in texts.items()}


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in OWN)


def test_all_files_together_are_small() -> None:
    sizes = {name: len(pack(file)) for name, file in read_files().items()}
    assert sum(sizes.values()) <= LARGEST, sizes


def test_both_languages_have_the_same_texts_with_the_same_values() -> None:
    english, chinese = map(catalogue, LANGUAGES)
    assert list(english) == list(chinese) == sorted(english)
    for key, text in english.items():
        assert text.strip() and chinese[key].strip(), key
        values = [set(re.findall(r"\{(\w+)\}", one)) for one in (text, chinese[key])]
        assert values[0] == values[1], key


def test_chinese_texts_are_chinese() -> None:
    same = {key for key, text in catalogue("en").items() if catalogue("zh")[key] == text}
    assert same <= {"query.mac", "overview.p95", "filter.placeholder"}


def test_every_kind_of_event_has_a_text() -> None:
    guide = (ROOT / "docs/operating/events.md").read_text(encoding="utf-8")
    table = guide.partition("## Kinds")[2].partition("\nThe data of a turn")[0]
    kinds = {kind for row in table.splitlines() for kind in _EVENT.findall(row[1:].partition("|")[0])}
    assert len(kinds) > 30
    texts = {key.removeprefix("event.") for key in catalogue("en") if key.startswith("event.")}
    assert texts == {kind.replace(".", "-") for kind in kinds}


def test_every_text_is_used_and_every_text_that_is_asked_for_is_there() -> None:
    text, known = sources(), set(catalogue("en"))
    named = set(_KEY.findall(text))
    built = [re.compile(re.sub(r"\\\$\\\{.*?\\\}", r"[\\w-]+", re.escape(one))) for one in _BUILT.findall(text)]
    assert {key for key in known - named if not any(one.fullmatch(key) for one in built)} == set()
    assert set(_ASKED.findall(text)) - known == set()


@for_every("path", OWN)
def test_a_module_imports_what_is_there(path: Path) -> None:
    html = (CONSOLE / "index.html").read_text(encoding="utf-8")
    mapped = set(json.loads(html.partition('<script type="importmap">')[2].partition("</script>")[0])["imports"])
    for name in _IMPORT.findall(path.read_text(encoding="utf-8")):
        if name in mapped or not name.startswith("."):
            assert name in mapped, name
        else:
            assert (path.parent / name).is_file(), name


@for_every("path", OWN)
def test_a_module_reads_no_text_as_code_or_html(path: Path) -> None:
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\b|new Function",
        path.read_text(encoding="utf-8"),
    )
    assert found == []


def test_the_page_names_files_that_are_there() -> None:
    html = (CONSOLE / "index.html").read_text(encoding="utf-8")
    names = [
        name.removeprefix("./")
        for name in re.findall(r'(?:href|src)="([^"#]+)"|": "(\./[^"]+)"', html)
        for name in name
    ]
    assert set(filter(None, names)) <= set(read_files())


@for_every("package", PACKAGES)
def test_vendored_files_are_those_that_were_recorded(package: dict[str, Any]) -> None:
    for file in package["files"]:
        content = (CONSOLE / "vendor" / file["name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"], file["name"]


def test_every_vendored_file_has_a_package_and_every_package_its_licence() -> None:
    recorded = {file["name"] for package in PACKAGES for file in package["files"]}
    assert {path.name for path in (CONSOLE / "vendor").iterdir()} - {"packages.json"} == recorded
    licences = [file["path"] for package in PACKAGES for file in package["files"] if file["path"] == "LICENSE"]
    # Both packages of signals have the same one.
    assert len(licences) == len(PACKAGES) - 1


@pytest.mark.slow
@for_every("package", PACKAGES)
def test_vendored_files_are_those_of_their_packages(package: dict[str, Any]) -> None:
    try:
        content = read_package(package["package"], package["version"], package["integrity"])
    except NoPackage as error:
        pytest.skip(str(error))
    for file in package["files"]:
        assert content[file["path"]] == (CONSOLE / "vendor" / file["name"]).read_bytes(), file["name"]


def test_a_browser_gets_the_files_compressed() -> None:
    page = read_files()["index.html"]
    assert gzip.decompress(pack(page)) == page.body


def test_browsers_get_neither_comments_nor_indents_and_every_line_keeps_its_number() -> None:
    files = read_files()
    for path in (*OWN, CONSOLE / "style.css"):
        written, sent = path.read_text(encoding="utf-8"), files[path.relative_to(CONSOLE).as_posix()].body.decode()
        lines = [(line.lstrip(" "), given) for line, given in zip(written.split("\n"), sent.split("\n"), strict=True)]
        kept = [line.strip() for line, given in lines if given == line]
        gone = [line.strip() for line, given in lines if given != line]
        assert all(given in ("", line) for line, given in lines), path.name
        assert all(line.startswith(("//", "/*", "*")) or line.endswith("*/") for line in gone), path.name
        assert not any(line.startswith("//") or (line[:2], line[-2:]) == ("/*", "*/") for line in kept), path.name
    for path in CONSOLE.glob("vendor/*.*js"):
        assert files[f"vendor/{path.name}"].body == path.read_bytes(), path.name


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_every_module_can_be_read() -> None:
    modules = {name: file.body.decode() for name, file in read_files().items() if name.endswith("js")}
    assert _unread({"wrong.js": "function wrong() { const nothing = ; }"})
    assert len(modules) > len(OWN)
    assert _unread(modules) == ""


def _unread(modules: dict[str, str]) -> str:
    """Return what Node says of modules that it cannot read, all in one process: to start Node costs most of this."""
    options = ["--experimental-vm-modules", "--no-warnings", "--input-type=module"]
    run = ["node", *options, "--eval", _READ_MODULES]
    done = subprocess.run(run, input=json.dumps(modules), capture_output=True, text=True, encoding="utf-8", check=True)
    return done.stdout
