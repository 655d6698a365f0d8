"""Tests near a file: those that mirror it, and those that import it."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path, PurePosixPath

__all__ = ["ROOTS", "judging", "mirrored", "nearest", "production", "sweeping"]

ROOTS = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler")
APART = (
    *("tests/test_", "tests/docs/", "tests/contributing/", "tests/examples/", "tests/proofs/"),
    "tests/conformance_torch/",
)
"""Tests that are about pages or the repository, or take minutes whatever they find."""

SLOW = (
    *("tests/bitstreams/test_emulator.py", "tests/bitstreams/test_faults.py"),
    *("tests/bitstreams/test_two_clocks.py", "tests/bitstreams/test_zynq.py"),
    *("tests/compiler/debug/test_gateware_bug.py", "tests/differential/test_programs.py"),
    *("tests/compiler/explore/test_cluster.py", "tests/compiler/tune/test_cluster.py"),
)
"""Tests that build simulations of RTL or start clusters: they come last."""

HARDWARE = ("tests/bitstreams/", "tests/differential/", "tests/vta_hw/")

KEPT_SCHEDULES = "tests/compiler/schedule/rules/test_kept_schedules.py"
KEPT_REPORTS = "tests/compiler/cli/test_kept_reports.py"
SWEEPING = {
    "compiler/benchmark/": ("tests/compiler/cli/test_benchmark.py", KEPT_REPORTS),
    "compiler/cli/": (KEPT_REPORTS, "tests/compiler/cli/test_json.py"),
    "compiler/cli/quantize/": ("tests/compiler/front/onnx/quantize/test_command.py",),
    "runtime/profile/": (KEPT_REPORTS,),
    "compiler/explore/": ("tests/compiler/cli/explore/test_command.py",),
    "compiler/schedule/": (KEPT_SCHEDULES,),
    "compiler/targets/cpu/": (
        KEPT_SCHEDULES,
        "tests/compiler/targets/cpu/executor/test_loops.py",
    ),
    "compiler/front/onnx/quantize/": (
        "tests/compiler/front/onnx/quantize/test_quantize.py",
        "tests/compiler/front/onnx/quantize/test_random.py",
    ),
    "compiler/targets/gpu/": (KEPT_SCHEDULES,),
    "compiler/program/": (KEPT_SCHEDULES,),
    "compiler/tune/": ("tests/compiler/tune/test_kept_candidates.py",),
    "compiler/graph/passes/": (KEPT_SCHEDULES, "tests/end_to_end/test_networks.py"),
    "compiler/front/onnx/": ("tests/conformance/test_meanings.py",),
    "compiler/graph/operators/": ("tests/conformance/test_meanings.py",),
    "compiler/graph/": ("tests/random_models/test_random_models.py",),
    "compiler/define/": ("tests/conformance/test_sample.py", KEPT_SCHEDULES),
    "compiler/targets/vta/": (
        *(
            "tests/compiler/targets/vta/test_ways.py",
            "tests/compiler/debug/test_sound_networks.py",
            "tests/compiler/targets/vta/test_cycles.py",
        ),
        *("tests/compiler/targets/vta/test_any_layers.py", "tests/end_to_end/test_joins.py"),
        *("tests/compiler/targets/vta/test_parts.py", "tests/end_to_end/test_batch.py"),
        *("tests/end_to_end/test_networks.py", "tests/end_to_end/test_attention.py"),
        *("tests/end_to_end/test_short_constants.py", "tests/end_to_end/test_transposed.py"),
        "tests/runtime/debug/test_session.py",
    ),
    "vta_hw/": ("tests/vta_hw/test_ports.py",),
}
"""Tests that are about all of a folder, though few of its files are imported there."""


def production(root: Path) -> list[str]:
    """The files of the production code, relative to the root."""
    found = (path for part in ROOTS for path in sorted((root / part).rglob("*.py")))
    return [path.relative_to(root).as_posix() for path in found]


def judging(root: Path) -> list[str]:
    """The test files that can notice a fault, those of hardware and the slow ones last."""
    found = (path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))
    return sorted(
        (each for each in found if not each.startswith(APART)),
        key=lambda each: (each in SLOW, each.startswith(HARDWARE), each),
    )


def mirrored(root: Path, path: str) -> list[str]:
    """``tests/<path of the file>``, or else the tests of its folder, or of the next above."""
    folder = PurePosixPath("tests") / PurePosixPath(path).parent
    own = folder / f"test_{PurePosixPath(path).stem}.py"
    if (root / own).exists():
        return [str(own)]
    while not list((root / folder).glob("test_*.py")):
        folder = folder.parent
    if str(folder) == "tests":
        return []
    found = [str(folder / each.name) for each in sorted((root / folder).glob("test_*.py"))]
    return sorted(found, key=lambda name: (name in SLOW, name))


def nearest(root: Path, path: str) -> list[str]:
    """Tests that import the file, directly or not: those that mirror it by a word of their names
    first, then those with the fewest imports between, of those the ones whose folder is nearest."""
    importers = _importers(root)
    distance, edge = {path: 0}, [path]
    while edge:
        step = {user for each in edge for user in importers[each]} - distance.keys()
        edge = sorted(step)
        distance |= dict.fromkeys(edge, max(distance.values()) + 1)
    tests = [
        name
        for name in distance
        if PurePosixPath(name).name.startswith("test_") and not name.startswith(APART)
    ]
    own = set(mirrored(root, path))

    def order(name: str) -> tuple[bool, int, int, int, str]:
        words = _words(path, name) if name in own else 0
        return name in SLOW, -words, distance[name], -_shared(path, name), name

    return sorted(tests, key=order)


def sweeping(path: str) -> list[str]:
    """Tests that are about all of the file's folder."""
    return [each for part, tests in SWEEPING.items() if path.startswith(part) for each in tests]


def _words(path: str, test: str) -> int:
    """Words that both files are named by; plurals are the same."""
    stems = PurePosixPath(path).stem, PurePosixPath(test).stem.removeprefix("test_")
    first, second = ({word.rstrip("s") for word in stem.split("_")} for stem in stems)
    return len(first & second)


def _shared(path: str, test: str) -> int:
    """Folders that both are in."""
    pairs = zip(path.split("/"), test.removeprefix("tests/").split("/"), strict=False)
    return sum(a == b for a, b in pairs)


@cache
def _importers(root: Path) -> dict[str, set[str]]:
    """Importers of each file."""
    files = production(root)
    files += [path.relative_to(root).as_posix() for path in (root / "tests").rglob("*.py")]
    known, importers = set(files), defaultdict(set)
    for user in files:
        for node in ast.walk(ast.parse((root / user).read_bytes())):
            for name in _named(user, node):
                for file in (f"{name}.py", f"{name}/__init__.py"):
                    if file in known and file != user:
                        importers[file].add(user)
    return importers


def _named(user: str, node: ast.AST) -> list[str]:
    """Paths without ending that an import statement may mean."""
    match node:
        case ast.Import(names=names):
            bases = [each.name for each in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            folder = user.split("/")[: -level or None] if level else []
            base = ".".join([*folder, *([module] if module else [])])
            bases = [base, *(f"{base}.{each.name}" for each in names)]
        case _:
            return []
    return [each.removeprefix("dovetail.").replace(".", "/") for each in bases]
