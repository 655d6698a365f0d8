"""Exported folders in a browser, without a network."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.cli.export.folder import write_folder
from dovetail.runtime.device import PreparedPart
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.native.content import array_type
from dovetail.runtime.parts import Part
from dovetail.runtime.result import RunResult

__all__ = ["BrowserDevice", "opened", "run_page"]

KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
}
HAS_ADAPTER = "async () => !!navigator.gpu && await navigator.gpu.requestAdapter() !== null"
RUN = """async inputs => {
    const given = {};
    for (const { name, dtype } of model.inputs) {
        const bytes = Uint8Array.from(atob(inputs[name]), each => each.charCodeAt(0));
        given[name] = new Dovetail.ARRAYS[dtype](bytes.buffer);
    }
    const found = Object.entries(await model.run(given));
    return Object.fromEntries(found.map(([name, { buffer, byteOffset, byteLength }]) =>
        [name, Array.from(new Uint8Array(buffer, byteOffset, byteLength))]));
}"""


@contextmanager
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    """The folder's page, when its model is loaded; skips when the browser has no WebGPU."""
    context = browser.new_context()
    page = context.new_page()

    def serve(route: Any) -> None:
        path = folder / (route.request.url.rsplit("/", 1)[-1] or "index.html")
        kind = KINDS.get(path.suffix, "application/octet-stream")
        route.fulfill(body=path.read_bytes(), content_type=kind)

    page.route("**/*", serve)
    page.goto("http://localhost/")
    if not page.evaluate(HAS_ADAPTER):
        context.close()
        pytest.skip("the browser has no adapter of WebGPU")
    page.wait_for_function("document.getElementById('state').textContent !== 'Loading the model'")
    assert page.text_content("#state") == "Ready"
    yield page
    context.close()


def run_page(page: Any, inputs: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    """The bytes of the outputs, by name."""
    given = {name: b64encode(array.tobytes()).decode() for name, array in inputs.items()}
    return {name: bytes(found) for name, found in page.evaluate(RUN, given).items()}


class BrowserDevice:
    """Runs parts compiled for ``webgpu``, the last that was prepared; see ``Device``."""

    name = target_kind = "webgpu"

    def __init__(self, browser: Any, folder: Path) -> None:
        """folder: for what the page reads."""
        self._browser, self._folder = browser, folder
        self._stack = ExitStack()
        self._page: Any = None

    def prepare(self, part: Part) -> PreparedPart:
        """The part, loaded by one page, which stays open."""
        assert isinstance(part, GpuPart)
        write_folder(part, self._folder, "a test")
        if self._page is None:
            self._page = self._stack.enter_context(opened(self._browser, self._folder))
        self._page.evaluate("async () => { window.model = await Dovetail.load(); }")
        return _ReadyPage(self._page, part)

    def close(self) -> None:
        """Close the page."""
        self._stack.close()


class _ReadyPage:
    def __init__(self, page: Any, part: GpuPart) -> None:
        self._page, self._part = page, part

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> RunResult:
        found = run_page(self._page, inputs)
        outputs = {
            each.name: np.frombuffer(found[each.name], array_type(each.dtype)).reshape(each.shape)
            for each in self._part.outputs
        }
        return RunResult(outputs, "webgpu", 0.0, 0.0, 0.0)
