"""NVIDIA's assembler, which PyPI's nvidia-cuda-nvcc has; it needs no GPU."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["PACKAGE", "Assembled", "assemble", "find_ptxas"]

PACKAGE = "nvidia-cuda-nvcc"

Assembled = dict[str, tuple[int, int]]
"""By kernel: registers of a thread, bytes that do not fit them."""


def find_ptxas() -> Path | None:
    """The program: of the path, or of the package; None when there is neither."""
    found = shutil.which("ptxas")
    if found:
        return Path(found)
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("cu*/bin/ptxas")):
            return path
    return None


def assemble(ptxas: Path, ptx: str, architecture: str, notes: list[str] | None = None) -> Assembled:
    """Assemble kernels.  Raises CalledProcessError, with what it says, when it refuses one.

    notes: gets the lines that it says.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.ptx"
        source.write_text(ptx)
        command = [str(ptxas), "-v", "-arch", architecture, "-o", f"{folder}/kernels", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    if notes is not None:
        notes += done.stderr.splitlines()
    pieces = done.stderr.split("Compiling entry function '")[1:]
    found = {}
    for piece in pieces:
        name = piece.partition("'")[0]
        used, spilled = re.search(r"Used (\d+)", piece), re.search(r"(\d+) bytes spill st", piece)
        assert used
        assert spilled
        found[name] = int(used[1]), int(spilled[1])
    return found
