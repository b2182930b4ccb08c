"""All pages and dialogs of the console, in `ConsoleSite`, and how one comes there."""

import json
import re
from dataclasses import dataclass
from typing import Final, Literal

from playwright.sync_api import Locator, Page, expect

from fleet.roles.control.routes.console import CONSOLE
from tests.support.console_page import go

Language = Literal["en", "zh"]
LOCALES: Final[dict[Language, str]] = {"en": "en-GB", "zh": "zh-CN"}
WIDTHS: Final = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
DEVICE: Final = "#/devices/02:00:00:00:00:01"
BOARD: Final = "board%3Dbread-compact-wifi"
PLACES: Final = {
    "overview": "#/",
    "live": "#/live?device=02:00:00:00:00:01",
    "events": "#/live?view=events",
    "turns": "#/live?view=turns",
    "conversations": "#/conversations",
    "conversation": "#/conversations/1",
    "devices": "#/devices",
    "no-device": "#/devices?filter=board%3Dnone",
    "device": DEVICE,
    "device-desired": f"{DEVICE}/desired",
    "device-tools": f"{DEVICE}/tools",
    "device-commands": f"{DEVICE}/commands",
    "device-findings": f"{DEVICE}/findings",
    "device-conversations": f"{DEVICE}/conversations",
    "device-memory": f"{DEVICE}/memory",
    "device-presence": f"{DEVICE}/presence",
    "device-events": f"{DEVICE}/events",
    "groups": "#/groups",
    "group": "#/groups/2",
    "new-group": "#/groups?make=1&query=online",
    "jobs": "#/jobs",
    "job": "#/jobs/2",
    "new-job": "#/jobs?make=1&query=tag.site%3Dberlin",
    "rollout": "#/jobs/3",
    "assets-rollout": "#/jobs/4",
    "new-rollout": f"#/jobs?make=1&kind=firmware&image=2&query={BOARD}",
    "new-assets": f"#/jobs?make=1&kind=assets&image=3&query={BOARD}",
    "firmware": "#/firmware",
    "announcements": "#/announcements",
    "talk": "#/talk",
    "agents": "#/agents",
    "agent": "#/agents/1",
    "agent-try": "#/agents/1/try",
    "agent-versions": "#/agents/1/versions",
    "agent-assignments": "#/agents/1/assignments",
    "models": "#/providers",
    "alerts": "#/alerts",
    "alert": "#/alerts/1",
    "alert-rules": "#/alerts/rules",
    "start": "#/start/owner",
    "start-models": "#/start/models",
    "start-language": "#/start/language",
    "start-device": "#/start/device",
    "start-talk": "#/start/talk",
    "usage": "#/usage",
    "audit": "#/audit",
    "accounts": "#/accounts",
    "tokens": "#/tokens",
    "system": "#/system",
    "nowhere": "#/nowhere",
}
"""Addresses by the names of their pictures."""


@dataclass(frozen=True, slots=True)
class DialogPlace:
    """A dialog of a page.

    Attributes:
        file: Which module draws it, below the folder of the console.
        place: On which page.
        opener: Text of the button that opens it, as a key of the catalogue; `{name}` stands for any value.
        before: What is to be opened first, by a CSS selector.
    """

    file: str
    place: str
    opener: str
    before: str = ""


DIALOGS: Final = (
    DialogPlace("parts/admit.js", "devices", "devices.add"),
    DialogPlace("pages/device.js", "device", "device.revoke", "details.menu > summary"),
    DialogPlace("pages/device.js", "device", "edit"),
    DialogPlace("parts/device-calls.js", "device-tools", "tools.call", "details.tool:last-of-type > summary"),
    DialogPlace("pages/device.js", "device-memory", "memory.clear"),
    DialogPlace("pages/conversations.js", "conversation", "delete"),
    DialogPlace("pages/conversations.js", "conversation", "conversations.redact-of"),
    DialogPlace("parts/job-state.js", "group", "delete"),
    DialogPlace("pages/groups.js", "groups", "groups.make"),
    DialogPlace("pages/groups.js", "group", "edit"),
    DialogPlace("pages/jobs.js", "job", "jobs.stop"),
    DialogPlace("parts/images.js", "firmware", "firmware.upload"),
    DialogPlace("parts/images.js", "firmware", "firmware.back"),
    DialogPlace("parts/images.js", "rollout", "firmware.back"),
    DialogPlace("pages/jobs.js", "rollout", "jobs.stop"),
    DialogPlace("pages/firmware.js", "firmware", "firmware.delete"),
    DialogPlace("pages/agents.js", "agents", "agents.make"),
    DialogPlace("parts/job-state.js", "agent", "agents.publish"),
    DialogPlace("parts/job-state.js", "agent", "delete"),
    DialogPlace("parts/job-state.js", "agent-assignments", "assign"),
    DialogPlace("parts/job-state.js", "agent-assignments", "agents.unassign"),
    DialogPlace("parts/job-state.js", "agent-versions", "agents.rollback"),
    DialogPlace("parts/provider.js", "models", "providers.make"),
    DialogPlace("parts/provider.js", "models", "providers.change"),
    DialogPlace("parts/provider.js", "start-models", "start.add-of"),
    DialogPlace("parts/admit.js", "start-device", "devices.add"),
    DialogPlace("pages/providers.js", "models", "delete-of"),
    DialogPlace("pages/alerts.js", "alert", "alerts.acknowledge"),
    DialogPlace("pages/audit.js", "audit", "details"),
    DialogPlace("pages/accounts.js", "accounts", "accounts.make"),
    DialogPlace("pages/accounts.js", "accounts", "accounts.reset"),
    DialogPlace("pages/accounts.js", "accounts", "delete-of"),
    DialogPlace("pages/tokens.js", "tokens", "tokens.make"),
    DialogPlace("pages/tokens.js", "tokens", "tokens.revoke"),
)


def catalogue(language: Language) -> dict[str, str]:
    """Return all texts of a language by their keys."""
    texts: dict[str, list[str]] = json.loads((CONSOLE / "texts.json").read_text(encoding="utf-8"))
    return {key: text[list(LOCALES).index(language)] for key, text in texts.items()}


def show(page: Page, place: str) -> None:
    """Show a page, and wait until it has read what it shows."""
    go(page, place)
    expect(page.locator("main:not(.entry) h1, dialog h2").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def opener_of(page: Page, dialog: DialogPlace, language: Language) -> Locator:
    """Show the page of a dialog; return the control that opens it."""
    show(page, PLACES[dialog.place])
    if dialog.before:
        page.locator(dialog.before).press("Enter")
    text = re.sub(r"\\\{\w+\\\}", ".*", re.escape(catalogue(language)[dialog.opener]))
    named = re.compile(f"^{text}$")
    main = page.get_by_role("main")
    return main.get_by_role("button", name=named).or_(main.get_by_role("link", name=named)).first


def opened(page: Page) -> Locator:
    """Return the dialog that is open, when it has read what it shows and stands still: while it rises it is pale."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator(".loading")).to_have_count(0)
    dialog.evaluate("(one) => Promise.allSettled(one.getAnimations().map((move) => move.finished))")
    return dialog
