"""A picture of an SVG: drawn by a real Chromium, written with few colours, so that a page loads fast."""

import base64
import re
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser

from tests.support.browser import running_browser

_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')
_COLORS = 256
_DRAW = """async ([text64, type]) => {
  const image = new Image();
  image.src = `data:${type};base64,${text64}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const bytes = pen.getImageData(0, 0, image.width, image.height).data;
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""

Pixels = NDArray[np.uint8]


def shoot(svg: str, out: Path) -> None:
    """Write an SVG as a PNG of its own size."""
    found = _SIZE.search(svg)
    assert found, "the SVG has no size"
    with running_browser() as browser:
        pixels = _draw(browser, svg.encode(), "image/svg+xml")
    assert pixels.shape[:2] == (int(found[2]), int(found[1]))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(write_png(*reduce(pixels)))


def repaint(browser: Browser, png: bytes) -> bytes:
    """Return a picture with few colours."""
    return write_png(*reduce(_draw(browser, png, "image/png")))


def _draw(browser: Browser, image: bytes, kind: str) -> Pixels:
    page = browser.new_page()
    width, height, text = page.evaluate(_DRAW, [base64.b64encode(image).decode(), kind])
    page.close()
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[:, :, :3]


def reduce(pixels: Pixels) -> tuple[Pixels, Pixels]:
    """Return the most frequent colours, and for each pixel the number of the nearest of them."""
    flat = pixels.reshape(-1, 3)
    colors, where, counts = np.unique(flat, axis=0, return_inverse=True, return_counts=True)
    kept = colors[np.argsort(-counts)[:_COLORS]]
    distances = ((colors[:, None].astype(np.int32) - kept[None]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1).astype(np.uint8)
    return kept, nearest[where].reshape(pixels.shape[:2])


def write_png(colors: Pixels, numbers: Pixels) -> bytes:
    """Return a PNG of these colours and, row by row, the number of each pixel's."""
    height, width = numbers.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), numbers], axis=1)
    head = width.to_bytes(4) + height.to_bytes(4) + bytes((8, 3, 0, 0, 0))
    parts = ((b"IHDR", head), (b"PLTE", colors.tobytes()), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)
