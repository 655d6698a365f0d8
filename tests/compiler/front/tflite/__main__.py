"""Every case on the CPU target, compiled, against LiteRT; writes the table of docs/tflite.md."""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import tflite

from dovetail.compiler import compile
from dovetail.compiler.errors import CompilerError
from dovetail.compiler.front.tflite.source import TfliteModel
from dovetail.compiler.front.tflite.table import CONVERTERS
from dovetail.runtime.session import Session

from .cases import FAMILIES, Case, cases
from .compare import difference
from .reference import litert

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tflite.md"
TABLE = re.compile(r"(<!-- operators -->\n).*?(<!-- end -->)", re.S)


def compiled(case: Case) -> str:
    """The fault of a model's machine code; nothing if it gives LiteRT's results."""
    module = compile(TfliteModel.of(case.content), "cpu")
    given = {x.name: value for x, value in zip(module.inputs, case.inputs, strict=True)}
    with Session(module, device="cpu") as session:
        found = session.run(None, given)
    return difference(found, litert(case.content, case.inputs, case.kind))


def table(results: dict[str, dict[str, list[str]]]) -> str:
    """One row for each operator: the element types of its cases, and those that differ."""
    known = {name for name in CONVERTERS if hasattr(tflite.BuiltinOperator, name)}
    rows = ["| operator | element types | cases |", "|---|---|---|"]
    for kind in sorted({*results, *known}):
        types = results.get(kind, {})
        count = sum(map(len, types.values()))
        wrong = sum(bool(said) for each in types.values() for said in each)
        said = f"{count}" + (f", {wrong} differ" if wrong else "") if count else "none yet"
        rows.append(f"| {kind} | {', '.join(sorted(types))} | {said} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """0 when all cases are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="operators; all by default")
    parser.add_argument("--write", action="store_true", help="write the table")
    options = parser.parse_args()
    results: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    failures = 0
    for family in FAMILIES:
        for case in cases(family):
            if options.kinds and case.kind not in options.kinds:
                continue
            try:
                said = compiled(case)
            except CompilerError as error:
                said = f"{type(error).__name__}: {error}"
            if said:
                failures += 1
                print(f"{case.kind} of {case.dtype}: {said}", flush=True)
            results[case.kind][case.dtype].append(said)
    count = sum(len(each) for types in results.values() for each in types.values())
    print(f"{len(results)} operators, {count} cases, {failures} differ")
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(TABLE.sub(lambda m: m[1] + table(results) + m[2], text), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
