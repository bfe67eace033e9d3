"""Headless Chromium, driven by Playwright, and pictures of pages to compare coarsely."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SIZE = (1280, 800)
_BLOCK = 20  # pixels
_FOLDER = Path(__file__).parent / "data" / "pages"


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium; skips the test, by name, where it or Playwright is absent."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed (extra browser)"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        yield browser
        browser.close()


def blocks(picture: bytes) -> np.ndarray:
    """Return the mean colours of the blocks of a screenshot: (40, 64, 3), 0 to 255.

    Letters are smaller than a block: another font hardly changes its mean, a box elsewhere does.
    """
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(picture), format="png")[..., :3]
    high, wide = pixels.shape[0] // _BLOCK, pixels.shape[1] // _BLOCK
    means = pixels.reshape(high, _BLOCK, wide, _BLOCK, 3).mean(axis=(1, 3))
    return np.rint(255 * means).astype(int)


def differs(one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of blocks whose colour is another one by more than an eighth."""
    return float((np.abs(one - other).max(axis=2) > 32).mean())


def stored(name: str, picture: bytes) -> np.ndarray:
    """Return the blocks of a stored picture; RENEW_PAGES=1 stores this one first."""
    from matplotlib.image import imread, imsave

    path = _FOLDER / f"{name}.png"
    if os.environ.get("RENEW_PAGES") == "1":
        _FOLDER.mkdir(exist_ok=True)
        imsave(path, blocks(picture).astype(np.uint8))
    return np.rint(255 * imread(path)[..., :3]).astype(int)
