"""The notebook's cells run in their order, and each one that shows something shows HTML."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> object:
    """Execute a cell as Jupyter does; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def test_every_cell_runs_and_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in code), "outputs belong to whoever runs it"
    names: dict[str, Any] = {}
    shown = [run_cell("".join(cell["source"]), names) for cell in code]
    pages = [value._repr_html_() for value in shown if value is not None]  # type: ignore[attr-defined]
    assert len(pages) == 4
    assert "Conv2d" in pages[0]
    assert f"{names['result'].cycles:,}" in pages[2]
    assert pages[3].count("<tr>") == 1 + len(names["module"].parts[0].layers)
