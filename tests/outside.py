"""Packages of others, as installing them leaves them."""

import tomllib
from pathlib import Path

__all__ = ["LEAKY", "install", "install_folder"]

LEAKY = Path(__file__).resolve().parents[1] / "examples" / "finish"
"""A distribution with one finish of the vector unit, ``leaky``."""


def install(folder: Path, package: str, group: str, name: str, text: str, thing: str) -> None:
    """Put a package of one module into ``folder``, with what installing it writes beside it."""
    (folder / f"{package}.py").write_text(text)
    record = folder / f"{package}-1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (record / "entry_points.txt").write_text(f"[{group}]\n{name} = {package}:{thing}\n")


def install_folder(distribution: Path, folder: Path) -> None:
    """Put the distribution in a folder, of one module and one entry point, into ``folder``."""
    project = tomllib.loads((distribution / "pyproject.toml").read_text())
    ((group, points),) = project["project"]["entry-points"].items()
    ((name, value),) = points.items()
    package, _, thing = value.partition(":")
    install(folder, package, group, name, (distribution / f"{package}.py").read_text(), thing)
