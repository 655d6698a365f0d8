"""Pages of the reference: one a package, written for Sphinx and kept out of the repository."""

from pathlib import Path

__all__ = ["FOLDER", "write_reference"]

FOLDER = "docs/reference"
PACKAGES = ("isa", "vta_hw", "vta_sim", "runtime", "compiler", "bitstreams")


def write_reference(root: Path) -> list[str]:
    """Write ``docs/reference/PACKAGE.md`` for each package with modules; their names, in order.

    A page whose content stays the same is not touched, so that Sphinx need not read it again.
    """
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {
        _dotted(path.parent, root): _page(path.parent, root)
        for name in PACKAGES
        for path in sorted((root / name).rglob("__init__.py"))
        if _modules(path.parent)
    }
    for stale in {path.stem for path in folder.glob("*.md")} - {_stem(name) for name in pages}:
        (folder / f"{stale}.md").unlink()
    for name, text in pages.items():
        path = folder / f"{_stem(name)}.md"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    return [_stem(name) for name in pages]


def _stem(name: str) -> str:
    return name.removeprefix("dovetail.").replace(".", "-")


def _dotted(path: Path, root: Path) -> str:
    return ".".join(("dovetail", *path.relative_to(root).with_suffix("").parts))


def _modules(folder: Path) -> list[Path]:
    """Modules of a package, itself included where it offers something."""
    found = [path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")]
    offers = "__all__" in (folder / "__init__.py").read_text(encoding="utf-8")
    return [folder / "__init__.py", *found] if offers else found


def _page(folder: Path, root: Path) -> str:
    parts = [f"# {_dotted(folder, root)}\n"]
    for path in _modules(folder):
        package = path.stem == "__init__"
        name = _dotted(folder if package else path, root)
        # What a package offers is described where it is defined.
        options = ["members", "undoc-members", "show-inheritance", *["no-index"] * package]
        lines = "".join(f"   :{option}:\n" for option in options)
        parts.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n{lines}```\n")
    return "\n".join(parts)
