"""A report in a headless browser."""

from pathlib import Path
from typing import Any

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.runtime.profile.profile import Profile, make_profile

__all__ = ["AXIS", "opened", "profile_of", "profiled"]

AXIS = "() => [dovetail.view.begin, dovetail.view.end]"
"""The cycles that the charts show."""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def profiled(name: str, model: Any, target: str) -> Profile:
    """A run of ``model``, a path or an ONNX model, on the simulator with random inputs."""
    return profile_of(name, compile(model, target=target))


def profile_of(name: str, module: Module) -> Profile:
    return make_profile(name, module, run(module, random_inputs(module), device="sim"))


def opened(browser: Any, folder: Path, text: str, width: int = 1400, scheme: str = "light") -> Any:
    """The page in the browser, offline, once it is drawn; ``problems`` of it are what scripts and
    the console complain about, none so far.
    """
    path = folder / "report.html"
    path.write_text(text)
    context = browser.new_context(
        offline=True, viewport={"width": width, "height": 1000}, color_scheme=scheme
    )
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda m: page.problems.append(m.text) if m.type == "error" else None)
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")
    assert not page.problems
    return page


def drawn(page: Any) -> None:
    """Wait until what was asked for is on the screen."""
    page.evaluate(DRAWN)
