"""``docs/conformance.md``: what passes by family, and why the rest does not."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import onnx

from dovetail.compiler.front.onnx.table import CONVERTERS

from .backend import Case
from .workers import Outcome

__all__ = ["write_report"]

INTRODUCTION = """# Conformance

ONNX's own backend tests (`onnx.backend.test`, onnx {version}, the variants for CPUs) on machine
code that the compiler generates: `make conformance` runs them and writes this page. Nothing falls
back to NumPy or to ONNX's reference code. {constant} of the cases that pass have results that
follow from shapes, attributes or values that determine a shape alone (`Shape`, `Constant`,
`Range`, ...); the compiler computes those while it imports the model, and no code is left to run.

**{passed} of {total} pass.**
"""

CATEGORIES = {
    "NodeModel": "one operator",
    "PyTorchConvertedModel": "layers exported by PyTorch",
    "PyTorchOperatorModel": "operators exported by PyTorch",
    "RealModel": "whole networks",
    "SimpleModel": "small graphs",
}


def write_report(path: Path, cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> None:
    """Write the page."""
    passed = [each for each in outcomes.values() if each.reason is None]
    text = INTRODUCTION.format(
        version=onnx.__version__,
        constant=sum(not each.kernels for each in passed),
        passed=len(passed),
        total=len(outcomes),
    )
    by_category = {name: CATEGORIES[cases[name].category] for name in outcomes}
    by_family = {
        name: _family(name, each)
        for name, each in outcomes.items()
        if cases[name].category == "NodeModel"
    }
    parts = [
        text,
        "## By kind of test\n",
        _table("kind", by_category, outcomes),
        "\n## Tests of one operator, by family\n",
        _table("family", by_family, outcomes),
        "\n## What does not pass\n",
        _failures(outcomes),
    ]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _family(name: str, outcome: Outcome) -> str:
    if name.endswith("_expanded_cpu"):
        return "function bodies"
    if not outcome.operators:
        return "not run"
    converter = CONVERTERS.get(outcome.operators[0])
    if converter is None:
        matching = [key for key in CONVERTERS if key.endswith(f".{outcome.operators[0]}")]
        converter = CONVERTERS[matching[0]] if matching else None
    if converter is None:
        return "by function bodies, or none"
    return converter.__module__.rpartition(".")[2].replace("_", " ")


def _table(title: str, groups: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> str:
    total = Counter(groups.values())
    passed = Counter(group for name, group in groups.items() if outcomes[name].reason is None)
    lines = [f"| {title} | pass | of |", "|---|---|---|"]
    lines += [f"| {group} | {passed[group]} | {count} |" for group, count in sorted(total.items())]
    return "\n".join(lines)


def _failures(outcomes: Mapping[str, Outcome]) -> str:
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, each in sorted(outcomes.items()):
        if each.reason is not None:
            reasons[_shortened(each.reason)].append(name.removesuffix("_cpu"))
    lines = ["| reason | tests |", "|---|---|"]
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        lines.append(f"| {reason} | {len(names)}: {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)


def _shortened(reason: str) -> str:
    """Without the names of nodes and files, so that equal reasons fall together."""
    text = re.sub(r"node '[^']*' ", "", reason)
    text = re.sub(r"\(known test=.*", "", text)
    text = re.sub(r" First \d+ mismatches.*| Mismatch at ind.*", "", text)
    return text.replace("|", "\\|").strip()[:160]
