"""A report in a headless browser."""

from pathlib import Path
from typing import Any

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.runtime.profile.profile import Profile, make_profile

__all__ = ["AXIS", "opened", "profile_of", "profiled"]

AXIS = """() => {
    const range = Bokeh.documents[0].get_model_by_name("timeline").x_range;
    return [range.start, range.end];
}"""
"""The cycles that the timeline shows."""


def profiled(name: str, model: Any, target: str) -> Profile:
    """A run of ``model``, a path or an ONNX model, on the simulator with random inputs."""
    return profile_of(name, compile(model, target=target))


def profile_of(name: str, module: Module) -> Profile:
    return make_profile(name, module, run(module, random_inputs(module), device="sim"))


def opened(browser: Any, folder: Path, text: str) -> Any:
    """The page in the browser, offline, once its plots are drawn; no script has failed."""
    path = folder / "report.html"
    path.write_text(text)
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle")
    assert not problems
    return page
