"""Pictures of the console in the documents: which there are, and how one is made of a page."""

import base64
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page

from tests.support.console_places import LOCALES, PLACES, Language
from tests.support.documents import ROOT

FOLDER: Final = ROOT / "docs/operating/console"
SIZE: Final = {"width": 1200, "height": 750}
MOST_BYTES: Final = 1_500_000
"""All of them together."""
NOT_SHOWN: Final = (
    *(
        "no-device",
        "nowhere",
        "new-group",
        "group",
        "events",
        "turns",
        "device-commands",
        "alert",
        "agent-try",
        "agent-assignments",
    ),
    *("device-conversations", "device-events", "device-presence", "device-memory"),
    *("rollout", "assets-rollout", "new-rollout", "new-assets"),
    *("start", "start-models", "start-language", "start-talk"),
)
"""Places without a picture of their own."""
SHOWN: Final = ("sign-in", *(name for name in PLACES if name not in NOT_SHOWN))
_ENCODE = """async ([text, quality]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${text}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext('2d').drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({ type: 'image/webp', quality });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let found = '';
  for (let at = 0; at < bytes.length; at += 32768) found += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(found);
}"""
_QUALITY = 0.62


def picture_of(name: str, language: Language, folder: Path = FOLDER) -> Path:
    """Return the file with the picture of a place."""
    return folder / f"{name}{'' if language == 'en' else f'-{language}'}.webp"


def pictures() -> list[Path]:
    """Return all pictures that there should be."""
    return [picture_of(name, language) for name in SHOWN for language in LOCALES]


def take_picture(browser: Browser, page: Page, path: Path) -> None:
    """Write what a page shows as a small WebP."""
    encoder = browser.new_page()
    text = encoder.evaluate(_ENCODE, [base64.b64encode(page.screenshot()).decode(), _QUALITY])
    encoder.close()
    path.write_bytes(base64.b64decode(text))
