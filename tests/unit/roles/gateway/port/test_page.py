import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from fleet.roles.gateway.port.page import Page, answer


class Tags(HTMLParser):
    """Collects all elements with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture
def page() -> Page:
    page = answer("/test")
    assert page
    return page


@pytest.fixture
def html(page: Page) -> str:
    return page.body.decode()


def policy(page: Page) -> dict[str, list[str]]:
    directives = dict(page.headers)["Content-Security-Policy"].split("; ")
    return {directive.split()[0]: directive.split()[1:] for directive in directives}


def sources(html: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)


def test_page_is_html_in_utf_8(page: Page) -> None:
    assert page.status == 200
    assert page.content_type == "text/html; charset=utf-8"
    assert page.body.startswith(b"<!doctype html>")


@pytest.mark.parametrize("path", ["/test?url=ws://box:9400", "/test/", "/test?"])
def test_page_is_found_with_a_query_and_a_slash(page: Page, path: str) -> None:
    assert answer(path) == page


def test_root_leads_to_the_page_relative_to_any_prefix() -> None:
    root = answer("/")
    assert root
    assert root.status == 302
    assert dict(root.headers)["Location"] == "test"


@pytest.mark.parametrize("path", ["", "/tests", "/test/more", "/favicon.ico", "/test.html", "/../test", "*", "//test"])
def test_other_paths_are_not_answered(path: str) -> None:
    assert answer(path) is None


def test_page_needs_no_other_file(html: str) -> None:
    tags = Tags(html)
    assert not [attributes for attributes in tags.named("script") if attributes]
    assert [attributes["href"][:5] for attributes in tags.named("link") if attributes["href"]] == ["data:"]
    assert not tags.named("img")
    assert not re.search(r"@import|url\(", html)


def test_policy_allows_each_script_and_style_by_its_hash_and_nothing_else(page: Page, html: str) -> None:
    def digest(source: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"

    rules = policy(page)
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [digest(source) for source in sources(html, "script")]
    assert rules["style-src"] == [digest(source) for source in sources(html, "style")]
    assert len(rules["script-src"]) == 8


def test_markup_holds_no_handlers_and_no_styles(html: str) -> None:
    names = {name for _, attributes in Tags(html).found for name in attributes}
    assert not {name for name in names if name.startswith("on") or name == "style"}


def test_scripts_never_make_markup_of_data(html: str) -> None:
    for script in sources(html, "script"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)
        assert not re.search(r"localStorage|sessionStorage|document\.cookie|indexedDB", script)


def test_every_label_in_the_markup_has_its_word_in_both_languages(html: str) -> None:
    words = sources(html, "script")[0]
    english, chinese = words.split("  zh: {")
    tags = Tags(html).found
    wanted = {attributes["data-word"] for _, attributes in tags if "data-word" in attributes}
    for _, attributes in tags:
        wanted |= {pair.split(":")[1] for pair in (attributes.get("data-words") or "").split()}
    assert len(wanted) > 50
    for word in wanted:
        assert f" {word}: " in english, word
        assert f" {word}: " in chinese, word


def test_page_stays_small(page: Page) -> None:
    assert len(page.body) < 84_000
