"""Draws docs/pictures/report.png: the report of ResNet-18 in a headless browser.

    python docs/site/pictures.py

Prints how long the report took to write and to open, and how large it is.
"""

import io
import shutil
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.cli.profile.page import profile_page
from dovetail.runtime import run
from dovetail.runtime.profile.profile import make_profile

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "report.png"
COLOURS = 224
READY = "document.body && document.body.dataset.ready"
TIMES = 3


def main() -> None:
    """Write the report, open it, and save what is seen."""
    sys.path.append(str(ROOT / "benchmarks"))
    from models import models

    module = compile(models()["resnet18"].path(), "vta:zynq7020")
    result = run(module, random_inputs(module), device="sim")
    begin = time.monotonic()
    text = profile_page(make_profile("ResNet-18", module, result))
    print(f"written in {time.monotonic() - begin:.2f} s, {len(text.encode()):,} bytes")
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(text)
        running = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
        )
        page = running.new_page(viewport={"width": 1280, "height": 1180})
        for _ in range(TIMES):
            begin = time.monotonic()
            page.goto(path.as_uri())
            page.wait_for_function(READY)
            print(f"opened in {time.monotonic() - begin:.2f} s")
        shot = page.screenshot()
        running.close()
    image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS)
    PICTURE.parent.mkdir(exist_ok=True)
    image.save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
