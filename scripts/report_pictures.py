#!/usr/bin/env python3
"""Takes the pictures of docs/report.md: a report on committed results, as Chromium shows it.

.venv/bin/python scripts/report_pictures.py, where chromium and Pillow are (.venv/bin/python -m pip
install pillow; it makes the files small and is needed for nothing else).
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

from PIL import Image  # noqa: E402

from chromium import Chromium  # noqa: E402

RESULTS = ROOT / "docs" / "benchmarks" / "raw" / "report-example.jsonl"
PICTURES = ROOT / "docs" / "images" / "report"


@dataclass(frozen=True)
class View:
    """What a picture shows: on a screen or on paper, how large, from which part of the page on."""

    part: str
    width: int
    height: int
    kind: str = "screen"
    scheme: str = "light"
    phone: bool = False


VIEWS = {
    "light": View("top", 900, 1240),
    "ranked": View("ranked", 900, 1500),
    "dark": View("maps", 900, 1560, scheme="dark"),
    "phone": View("ranked", 390, 1500, phone=True),
    "print": View("phases", 760, 1500, kind="print"),
}


def main() -> int:
    """Makes the report and takes its pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "report.html"
        words = ["-m", "penstock", "report", str(RESULTS), "--out", str(page)]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
        subprocess.run([sys.executable, *words], check=True, env=environment)
        with Chromium(Path(name) / "profile") as browser:
            for picture, view in VIEWS.items():
                take(browser, page, view, PICTURES / f"{picture}.png")
    return 0


def take(browser: Chromium, page: Path, view: View, to: Path) -> None:
    """One picture, with few colours: the pages have few."""
    browser.media(view.kind, view.scheme)
    browser.sized(view.width, view.height, mobile=view.phone)
    browser.open(page)
    browser.evaluate(f"document.getElementById('{view.part}')?.scrollIntoView()")
    image = Image.open(io.BytesIO(browser.screenshot())).convert("RGB")
    image.quantize(96).save(to, optimize=True)
    print(f"{to.relative_to(ROOT)}: {to.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
