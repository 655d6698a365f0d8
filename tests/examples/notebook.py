"""The example's notebook, executed as Jupyter does.

    python -m tests.examples.notebook

writes what its cells show into it.
"""

import ast
import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOK", "lasting", "shown"]

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.ipynb"
FORMS = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}
NUMBER = re.compile(r"[\d,.]*\d(e-?\d+)?")


def shown(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each cell of code, when all are executed in their order."""
    names: dict[str, Any] = {}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = []
    with contextlib.chdir(NOTEBOOK.parent):
        for number, cell in enumerate(code, 1):
            value = _run("".join(cell["source"]), names)
            outputs.append([] if value is None else [_output(value, number)])
    return outputs


def lasting(output: dict[str, Any]) -> dict[str, str]:
    """Output, by form, without numbers, which better plans change, and drawings of them."""
    return {
        form: "" if "svg" in form else NUMBER.sub("#", "".join(text))
        for form, text in output["data"].items()
    }


def _run(source: str, names: dict[str, Any]) -> object:
    """Execute a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def _output(value: object, number: int) -> dict[str, Any]:
    """As a notebook's file has it."""
    data = {form: getattr(value, name)() for name, form in FORMS.items() if hasattr(value, name)}
    data["text/plain"] = repr(value)
    return {
        "data": {form: text.splitlines(keepends=True) for form, text in data.items()},
        "execution_count": number,
        "metadata": {},
        "output_type": "execute_result",
    }


def main() -> None:
    """Execute the notebook, and keep what it shows."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    outputs = iter(shown(notebook))
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"], cell["outputs"] = number, next(outputs)
    content = json.dumps(notebook, indent=1, ensure_ascii=False)
    temporary = NOTEBOOK.with_suffix(".new")
    temporary.write_text(content + "\n", encoding="utf-8")
    os.replace(temporary, NOTEBOOK)


if __name__ == "__main__":
    main()
