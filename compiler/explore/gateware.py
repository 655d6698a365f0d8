"""Identity of the gateware, as a hash of its sources: equal hashes mean equal netlists.

Comments, docstrings and layout do not count, and it needs no hardware tool.
"""

import ast
import hashlib
from functools import lru_cache
from pathlib import Path

import dovetail.isa

__all__ = ["gateware_hash"]

TOP = "vta_hw/accelerator.py"


@lru_cache(maxsize=1)
def gateware_hash() -> str:
    """SHA-256 of the top module's sources and of all of Dovetail's that they import."""
    root = Path(str(dovetail.isa.__file__)).parents[1]
    waiting, trees = [TOP], dict[str, ast.Module]()
    while waiting:
        name = waiting.pop()
        if name in trees or not (root / name).exists():
            continue
        trees[name] = ast.parse((root / name).read_text(encoding="utf-8"))
        waiting += _imports(name, trees[name])
    total = hashlib.sha256()
    for name in sorted(trees):
        total.update(f"{name}\n{ast.dump(_without_docstrings(trees[name]))}\n".encode())
    return total.hexdigest()


def _imports(name: str, tree: ast.Module) -> list[str]:
    """Files of Dovetail that ``tree`` may import."""
    folder = name.split("/")[:-1]
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".") if node.module else []
        if node.level:
            place = [*folder[: len(folder) - node.level + 1], *parts]
        elif parts[:1] == ["dovetail"]:
            place = parts[1:]
        else:
            continue
        stem = "/".join(place)
        found.append(f"{stem}.py")
        found += (f"{stem}/{alias.name}.py" for alias in node.names)
    return found


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not _is_text(each)]
            node.body = kept  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
