"""Compares networks from ``.pt2`` files with torch's results; torch need not be installed.

``make torch-networks``: ``export.py`` makes the files.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.isa.errors import DovetailError
from dovetail.runtime.session import run

BEGIN, END = "<!-- networks: make torch-networks -->", "<!-- end of networks -->"
CLOSE = 1e-4


def difference(path: Path) -> float:
    """The largest difference from torch's result, relative to the larger of 1 and its largest."""
    with np.load(path.with_suffix(".npz")) as archive:
        x, wanted = archive["x"], archive["y"]
    module = compile(open_model(path), "cpu")
    (found,) = run(module, {module.inputs[0].name: x}).outputs.values()
    return float(np.abs(found - wanted).max() / max(1.0, float(np.abs(wanted).max())))


def main() -> None:
    """Compare all networks in a folder; write the table."""
    parser = argparse.ArgumentParser(prog="torch_networks")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--match", default="")
    parser.add_argument("--report", type=Path, help="a page whose table is written anew")
    arguments = parser.parse_args()
    equal: dict[str, list[str]] = {}
    wrong: list[str] = []
    paths = sorted(arguments.folder.glob("*.npz"))
    for path in paths:
        family, name = path.stem.split(".", 1)
        if arguments.match not in path.stem:
            continue
        start = time.monotonic()
        try:
            largest = difference(path.with_suffix(".pt2"))
            said = f"{largest:.1e}"
            if largest <= CLOSE:
                equal.setdefault(family, []).append(name)
            else:
                wrong.append(f"| `{name}` | differs by {said} |")
        except DovetailError as error:
            said = str(error)[:300]
            wrong.append(f"| `{name}` | {said} |")
        print(f"{path.stem}: {said} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{sum(map(len, equal.values()))} equal torch, {len(wrong)} do not", flush=True)
    if arguments.report:
        rows = [f"| {family} | {len(names)} | {', '.join(names)} |"
                for family, names in sorted(equal.items())]  # fmt: skip
        lines = ["| equal | networks | |", "|---|---|---|", *rows]
        if wrong:
            lines += ["", "| not equal | why |", "|---|---|", *wrong]
        text = arguments.report.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        table = "\n".join(lines)
        arguments.report.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    assert "torch" not in sys.modules
    sys.exit(bool(wrong))


main()
