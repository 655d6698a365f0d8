"""The documentation site: the pages of the repository, the reference of its packages, a search.

``make docs`` builds it in ``build/site``.  Sources are where they are read on any other day; the
front page is README.md.
"""

import gc
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from docstrings import as_markup  # noqa: E402
from inline import inline_diagrams  # noqa: E402
from reference import FOLDER, PACKAGES, write_reference  # noqa: E402

# Trees of pages stay to the end: looking for what can go in them took a tenth of the time.
gc.set_threshold(100_000, 50, 1000)

project = "Dovetail"
root_doc = "README"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/**.md",
    "examples/*/README.md",
]
# Looking into each file of an environment takes a tenth of the time.
exclude_patterns = [".*", "build", "node_modules"]
html_theme = "furo"
html_title = "Dovetail"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
# Excerpts of results would be fetched, which a browser forbids where there is no server.
html_show_search_summary = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_show_sourcelink = False
myst_heading_anchors = 3
# Diagrams and grammars stand in blocks of code without a language.
highlight_language = "none"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# It is in no extra that `make setup` installs.
autodoc_mock_imports = ["pyopencl", "wgpu"]
# Signatures have names without modules, which some classes share; the first one is linked.
suppress_warnings = ["ref.python"]
# The navigation lists pages, not every name in them.
toc_object_entries = False
if tags.has("brief"):  # type: ignore[name-defined]  # noqa: F821
    # Describing modules takes most of a build's time.
    inner = ("bitstreams", "compiler-*", "runtime-*", "vta_hw*", "vta_sim-*")
    exclude_patterns += [f"{FOLDER}/dovetail-{name}" for name in inner]
    suppress_warnings.append("toc.excluded")

CONTENTS = {
    "Start": ["docs/architecture", "docs/README"],
    "Guides": [
        *("docs/guides/first-model", "docs/guides/model", "docs/guides/quantize"),
        *("docs/guides/own-hardware", "docs/guides/schedule", "docs/guides/own-operator"),
        *("docs/guides/own-instruction", "docs/guides/instruction", "docs/guides/buffer"),
        "docs/guides/own-board",
        *("docs/guides/deployment", "docs/guides/wrong-byte"),
        *("docs/profile", "docs/debug", "docs/explore", "docs/tuning", "docs/boards"),
        *(f"examples/{name}/README" for name in ("digits", "networks", "story")),
    ],
    "Explanation": [
        *("docs/accelerator", "docs/exactness", "docs/compiler", "docs/planner", "docs/loops"),
        *("docs/quantization", "docs/cpu", "docs/gpu", "docs/simulator", "docs/proofs"),
        *("docs/transformers", "docs/trust"),
    ],
    "Reference": [
        *("docs/isa", "docs/operators", "docs/timing", "docs/runtime"),
        *("docs/tflite", "docs/torch"),
    ],
    "Benchmarks": ["docs/benchmarks", "docs/resources", "docs/conformance"],
    "Development": ["CONTRIBUTING"],
}
"""The navigation.  Pages that no entry names come at the end of Guides, or of Explanation."""


CLASSES = {
    name
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}


def setup(app: Any) -> None:
    """Connect what happens while Sphinx runs."""
    pages = write_reference(ROOT)
    named = {entry for entries in CONTENTS.values() for entry in entries}
    for folder, caption in (("docs/guides", "Guides"), ("docs", "Explanation")):
        found = sorted(f"{folder}/{path.stem}" for path in (ROOT / folder).glob("*.md"))
        CONTENTS[caption] += [page for page in found if page not in named]
    CONTENTS["Reference"][:0] = [f"{FOLDER}/{page}" for page in pages]
    app.connect("source-read", _add_contents)
    # The navigation may change while README.md does not.
    app.connect("env-get-outdated", lambda *_: [root_doc])
    app.connect("autodoc-process-docstring", _process_docstring)
    app.connect("doctree-read", _leave_others)
    app.connect("doctree-read", _show_diagrams, priority=100)
    app.connect("build-finished", _write_index)


def _add_contents(app: Any, page: str, source: list[str]) -> None:
    """Append the navigation to the front page."""
    for caption, entries in CONTENTS.items() if page == root_doc else ():
        if entries:
            options = f":hidden:\n:maxdepth: 1\n:caption: {caption}"
            lines = "\n".join(f"/{entry}" for entry in entries)
            source[0] += f"\n```{{toctree}}\n{options}\n\n{lines}\n```\n"


def _process_docstring(
    app: Any, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    lines[:] = as_markup(lines)


def _leave_others(app: Any, doctree: nodes.document) -> None:
    """Names in signatures that are not classes of ours lead nowhere.

    ``bytes`` and the like are not our attributes of that name; and a search takes long.
    """
    for reference in list(doctree.findall(addnodes.pending_xref)):
        name = str(reference["reftarget"]).rpartition(".")[2]
        if reference.get("refdomain") == "py" and name not in CLASSES:
            reference.replace_self(reference.children)


def _show_diagrams(app: Any, doctree: nodes.document) -> None:
    """Before Sphinx collects images, so that it copies none of them."""
    inline_diagrams(doctree, ROOT / "docs" / "diagrams")


def _write_index(app: Any, problem: Exception | None) -> None:
    """The front page under the name that browsers look for."""
    if problem is None and app.builder.format == "html":
        folder = Path(app.outdir)
        shutil.copyfile(folder / f"{root_doc}.html", folder / "index.html")
