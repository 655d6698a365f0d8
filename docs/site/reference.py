"""Pages of the reference, written for Sphinx from the sources and kept out of the repository.

The commands, the configuration's fields, what ``import dovetail`` gives, and one page a package.
"""

from pathlib import Path

from commands import commands_page
from configuration import configuration_page

import dovetail

__all__ = ["FOLDER", "PACKAGES", "write_reference"]

FOLDER = "docs/reference"
PYTHON = """# Python

What `import dovetail` gives.  The packages behind it have a page each.

```{{eval-rst}}
{names}
```

## Packages

```{{toctree}}
:maxdepth: 1

{pages}
```
"""
FIRST = ("compile", "Session", "run", "Module", "HardwareConfig", "find_config")
"""Names that most users need; the other names follow."""
PACKAGES = ("isa", "vta_hw", "vta_sim", "runtime", "compiler", "bitstreams")


def write_reference(root: Path) -> list[str]:
    """Write the pages in ``docs/reference``; the names of those that the navigation lists.

    A page whose content stays the same is not touched, so that Sphinx need not read it again.
    """
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    packages = {
        _dotted(path.parent, root).replace(".", "-"): _page(path.parent, root)
        for name in PACKAGES
        for path in sorted((root / name).rglob("__init__.py"))
        if _modules(path.parent)
    }
    listed = {
        "commands": commands_page(),
        "python": PYTHON.format(names=_names(), pages="\n".join(packages)),
        "configuration": configuration_page(),
    }
    pages = listed | packages
    for stale in {path.stem for path in folder.glob("*.md")} - set(pages):
        (folder / f"{stale}.md").unlink()
    for stem, text in pages.items():
        path = folder / f"{stem}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return list(listed)


def _names() -> str:
    """Directives for what the package gives; each is described where it is defined, too."""
    names = [*FIRST, *sorted({*dovetail.__all__} - {*FIRST, "__version__"})]
    kinds = {True: ("class", "   :members:\n"), False: ("function", "")}
    shown = [(name, *kinds[isinstance(getattr(dovetail, name), type)]) for name in names]
    return "\n\n".join(
        f".. auto{kind}:: dovetail.{name}\n{members}   :no-index:" for name, kind, members in shown
    )


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
