"""What every kernel must satisfy beyond its bounds, which ``Stage`` checks when it is made."""

import re

from ..errors import GraphError
from .ir import Fold, Kernel, Product, Ref, Scope, Stage, Total
from .text import buffers_of
from .tiles import tile_loops

__all__ = ["verify"]

DTYPES = {
    Scope.DRAM: ("int8", "int32", "float32"),
    Scope.ACT: ("int8",),
    Scope.WGT: ("int8",),
    Scope.ACC: ("int32",),
    Scope.PAR: ("int32", "float32"),
    Scope.TAP: ("int8",),
    Scope.TAB: ("int8",),
}
"""The element types that each scope holds."""

LOOP_NAME = re.compile(r"[A-Za-z_][\w.]*")


def verify(kernel: Kernel) -> None:
    """Check names, types, scopes, and that each element has one definition.

    Raises GraphError, naming the stage, when a name stands for two things or a loop for two
    extents; when an element type is not its scope's; when an operand's type does not fit its use;
    when a stage folds without loops to fold, or its target moves with one; when two iterations
    write one element within a tile, or two stages one buffer; when a stage reads what a later one
    writes.
    """
    tiles = {loop.name for loop in tile_loops(kernel)}
    extents: dict[str, int] = {}
    for stage in kernel.stages:
        _verify_loops(stage, extents)
    for buffer in buffers_of(kernel).values():
        if buffer.dtype not in DTYPES[buffer.scope]:
            raise GraphError(
                f"kernel {kernel.name!r}: buffer {buffer.name!r} is {buffer.dtype} in "
                f"{buffer.scope.value}, which holds {' or '.join(DTYPES[buffer.scope])}"
            )
        if any(size < 1 for size in buffer.shape):
            raise GraphError(f"buffer {buffer.name!r} has shape {buffer.shape}; required sizes > 0")
    for stage in kernel.stages:
        for ref in stage.refs:
            if len(ref.indices) != len(ref.buffer.shape):
                _fail(stage, f"{ref} has {len(ref.indices)} indices", f"{len(ref.buffer.shape)}")
        _verify_types(stage)
        _verify_target(stage, tiles)
    _verify_order(kernel)


def _fail(stage: Stage, found: str, required: str) -> None:
    raise GraphError(f"stage {stage.name}: {found}; required {required}")


def _verify_loops(stage: Stage, extents: dict[str, int]) -> None:
    for loop in stage.loops:
        if not LOOP_NAME.fullmatch(loop.name):
            _fail(stage, f"a loop named {loop.name!r}", "letters, digits, _ and dots")
        if loop.extent < 1:
            _fail(stage, f"loop {loop.name} runs {loop.extent} times", "at least once")
        if extents.setdefault(loop.name, loop.extent) != loop.extent:
            found = f"loop {loop.name} runs {loop.extent} times"
            _fail(stage, found, f"{extents[loop.name]} times, as in the stages before")
    unknown = stage.reduction - set(stage.extents)
    if unknown:
        _fail(stage, f"{min(unknown)!r} is to fold but no loop of it", "names of its loops")
    if (stage.fold is Fold.NONE) != (not stage.reduction):
        loops = ", ".join(sorted(stage.reduction)) or "no loop"
        _fail(stage, f"fold {stage.fold.value} over {loops}", "both a fold and its loops, or none")


def _verify_types(stage: Stage) -> None:
    target = stage.target.buffer.dtype
    value = _value_dtype(stage)
    if stage.finish:
        for ref, dtype in ((stage.finish.bias, "int32"), (stage.finish.scale, "float32")):
            if ref.buffer.dtype != dtype:
                _fail(stage, f"{ref} is {ref.buffer.dtype}", dtype)
            moving = stage.reduction & {n for index in ref.indices for n, _ in index.terms}
            if moving:
                _fail(stage, f"{ref} moves with folded loop {min(moving)}", "one value a result")
        end = stage.finish
        if not -128 <= end.low <= end.high <= 127:
            _fail(stage, f"limits {end.low}..{end.high}", "-128 <= low <= high <= 127")
        if not -128 <= end.zero_point <= 127:
            _fail(stage, f"zero point {end.zero_point}", "-128..127")
        value = "int8"
    if stage.table:
        table = stage.table
        lanes = stage.target.buffer.shape[-1]
        if table.dtype != "int8" or table.shape != (256, lanes):
            _fail(stage, f"table {table.dtype}{list(table.shape)}", f"int8[256, {lanes}]")
        if value != "int8":
            _fail(stage, f"a look-up of {value}", "int8")
    if value != target:
        _fail(stage, f"{stage.target} is {target}", f"{value}, the value's type")


def _value_dtype(stage: Stage) -> str:
    """int8 for a copy or a maximum of int8, else int32."""
    for ref in stage.refs[1:]:
        parameter = stage.finish and ref in (stage.finish.bias, stage.finish.scale)
        if not parameter and ref.buffer.dtype not in ("int8", "int32"):
            _fail(stage, f"operand {ref} is {ref.buffer.dtype}", "int8 or int32")
    match stage.value:
        case Product(left=left, right=right):
            for ref in (left, right):
                if ref.buffer.dtype != "int8":
                    _fail(stage, f"factor {ref} is {ref.buffer.dtype}", "int8")
            return "int32"
        case Total():
            if stage.fold is not Fold.NONE:
                _fail(stage, f"fold {stage.fold.value} of a sum of two", "no fold")
            return "int32"
        case Ref(buffer=buffer) if stage.fold is not Fold.SUM:
            return buffer.dtype
        case _:
            return "int32"


def _verify_target(stage: Stage, tiles: set[str]) -> None:
    """No element may be written twice by one stage within a tile.

    Sufficient: sorted by stride, each loop's step is beyond what the smaller ones reach together.
    """
    offset = stage.target.offset
    moving = {name for index in stage.target.indices for name, _ in index.terms}
    if moving & stage.reduction:
        found = f"{stage.target} moves with folded loop {min(moving & stage.reduction)}"
        _fail(stage, found, "one target a result")
    free = [
        (abs(offset.coefficient(loop.name)), loop)
        for loop in stage.loops
        if loop.name not in stage.reduction and loop.name not in tiles and loop.extent > 1
    ]
    reach = 0
    for stride, loop in sorted(free, key=lambda pair: pair[0]):
        if stride <= reach:
            found = f"{stage.target} may be written twice, over loop {loop.name}"
            _fail(stage, found, "one element an iteration")
        reach += stride * (loop.extent - 1)


def _verify_order(kernel: Kernel) -> None:
    names = [stage.name for stage in kernel.stages]
    if len(set(names)) != len(names):
        raise GraphError(f"kernel {kernel.name!r}: stages {names} have a name twice")
    writer: dict[str, str] = {}
    for stage in kernel.stages:
        name = stage.target.buffer.name
        if name in writer:
            found = f"{name!r} is written a second time, after {writer[name]}"
            _fail(stage, found, "one writer a buffer")
        writer[name] = stage.name
    written: set[str] = set()
    for stage in kernel.stages:
        later = {ref.buffer.name for ref in stage.refs[1:]} & (set(writer) - written)
        if later:
            found = f"{min(later)!r} is read before {writer[min(later)]} writes it"
            _fail(stage, found, "the writer first")
        written.add(stage.target.buffer.name)
