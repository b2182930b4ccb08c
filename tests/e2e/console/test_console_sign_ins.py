"""A sign-in that has ended leads each page to the sign-in, and from there back."""

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.support.browser import Visitor
from tests.support.console_page import go, sign_in_with_account
from tests.support.console_places import PLACES, show
from tests.support.console_site import ConsoleSite
from tests.support.offered_firmware import image_of

pytestmark = pytest.mark.slow
PERSON = ("ling", "correct horse battery")
ASKS = """async () => {
  const { get } = await import(new URL("core/api.js", location.href).href);
  window.late = get("/usage", { late: 1 }).catch((problem) => problem.status);
}"""
QUIET = {"talk", "nowhere"}
"""Pages that ask nothing before somebody does something."""


def test_each_page_leads_to_the_sign_in_and_back(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as site:
        site.run(site.add_owner(*PERSON))
        visitor = Visitor(browser)
        page = sign_in_with_account(visitor.open(f"{site.url}/console/"), *PERSON)
        for name, place in PLACES.items():
            if name in QUIET:
                continue
            show(page, "#/nowhere")
            page.reload()
            show(page, "#/nowhere")
            site.run(site.end_sign_ins())
            go(page, place)
            expect(page.locator("main.entry").get_by_text("You were signed out")).to_be_visible()
            sign_in_with_account(page, *PERSON)
            show(page, place)
            assert page.evaluate("location.hash") == place
            assert [one for one in visitor.complaints if "401" not in one] == [], name
        page.close()
        visitor.leave()
        assert [one for one in visitor.complaints if "401" not in one] == []


def test_a_late_answer_to_an_earlier_sign_in_does_not_end_this_one(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as site:
        site.run(site.add_owner(*PERSON))
        visitor, held = Visitor(browser), list[Route]()
        page = sign_in_with_account(visitor.open(f"{site.url}/console/"), *PERSON)
        show(page, "#/nowhere")
        page.route("**/v1/usage?late=1", lambda route: held.append(route))
        with page.expect_request("**/v1/usage?late=1"):
            page.evaluate(ASKS)
        site.run(site.end_sign_ins())
        go(page, "#/devices")
        expect(page.locator("main.entry").get_by_text("You were signed out")).to_be_visible()
        sign_in_with_account(page, *PERSON)
        expect(page.locator("main.entry")).to_have_count(0)
        held[0].fulfill(status=401, json={})
        assert page.evaluate("window.late") == 401
        expect(page.locator("main.entry")).to_have_count(0)
        show(page, "#/groups")
        page.close()
        visitor.leave()


def test_an_upload_that_is_refused_leads_to_the_sign_in(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ConsoleSite.running(tmp_path_factory.mktemp("console"), "empty") as site:
        site.run(site.add_owner(*PERSON))
        visitor = Visitor(browser)
        page = sign_in_with_account(visitor.open(f"{site.url}/console/"), *PERSON)
        show(page, "#/firmware")
        page.get_by_role("main").get_by_role("button", name="Upload an image").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("combobox", name="Board").fill("esp-box-3")
        file = {"name": "a.bin", "mimeType": "application/octet-stream", "buffer": image_of("2.5.0")}
        dialog.get_by_label("File").set_input_files(file)
        site.run(site.end_sign_ins())
        dialog.get_by_role("button", name="Upload an image").click()
        expect(page.locator("main.entry").get_by_text("You were signed out")).to_be_visible()
        sign_in_with_account(page, *PERSON)
        show(page, "#/firmware")
        page.close()
        visitor.leave()
        assert [one for one in visitor.complaints if "401" not in one] == []
