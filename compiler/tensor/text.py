"""Kernels as text: the printer; ``parse`` reads it back.

    kernel "conv" macs 147456
      buffer "acc": int32[1, 8, 8, 16] in acc
      buffer "y": int8[1, 8, 8, 16] in act
      stage "finish"
        for c in 1 serial
          for k in 4 hardware reduces
            "y"[c, 2*y.outer + 1, x, l] = max("acc"[c, k, x, l])

Names of kernels, buffers and stages are JSON strings, those of loops identifiers with dots.  The
right-hand side, from the inside: a value, its fold, ``requantize(bias, scale, zero point, low,
high) of``, ``lookup TABLE of``.  Indentation means nothing to the parser.
"""

import json

from ..errors import GraphError
from .ir import Buffer, Fold, Kernel, Product, Ref, Scaled, Stage, Total, Value

__all__ = ["buffers_of", "to_text"]


def buffers_of(kernel: Kernel) -> dict[str, Buffer]:
    """Every buffer that the kernel touches, by name, sorted.

    Raises GraphError when two buffers have one name.
    """
    found: dict[str, Buffer] = {}
    for stage in kernel.stages:
        tables = (stage.table,) if stage.table else ()
        for buffer in (*(ref.buffer for ref in stage.refs), *tables):
            known = found.setdefault(buffer.name, buffer)
            if known != buffer:
                raise GraphError(
                    f"kernel {kernel.name!r}: buffer {buffer.name!r} is both {_kind(known)} and "
                    f"{_kind(buffer)}"
                )
    return dict(sorted(found.items()))


def to_text(kernel: Kernel) -> str:
    """The kernel, one line a buffer, a loop and an assignment.

    Raises GraphError when two buffers have one name.
    """
    lines = [f"kernel {_quoted(kernel.name)} macs {kernel.macs}"]
    for buffer in buffers_of(kernel).values():
        lines.append(f"  buffer {_quoted(buffer.name)}: {_kind(buffer)}")
    for stage in kernel.stages:
        lines.append(f"  stage {_quoted(stage.name)}")
        for depth, loop in enumerate(stage.loops):
            mark = " reduces" if loop.name in stage.reduction else ""
            lines.append(f"  {'  ' * (depth + 1)}{loop}{mark}")
        indent = "  " * (len(stage.loops) + 2)
        lines.append(f"{indent}{_ref(stage.target)} = {_right(stage)}")
    return "\n".join(lines)


def _quoted(name: str) -> str:
    return json.dumps(name)


def _kind(buffer: Buffer) -> str:
    return f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}] in {buffer.scope.value}"


def _ref(ref: Ref) -> str:
    return f"{_quoted(ref.buffer.name)}[{', '.join(map(str, ref.indices))}]"


def _value(value: Value) -> str:
    match value:
        case Ref():
            return _ref(value)
        case Product(left=left, right=right, offset=0):
            return f"{_ref(left)} * {_ref(right)}"
        case Product(left=left, right=right, offset=offset):
            return f"{_ref(left)} * ({_ref(right)} + {offset})"
        case Scaled(ref=ref, factor=factor):
            return f"{_ref(ref)} * {factor}"
        case Total(left=first, right=second):
            return f"{_value(first)} + {_value(second)}"


def _right(stage: Stage) -> str:
    text = _value(stage.value)
    if stage.fold is not Fold.NONE:
        text = f"{stage.fold.value}({text})"
    if stage.finish:
        end = stage.finish
        limits = f"{end.zero_point}, {end.low}, {end.high}"
        text = f"requantize({_ref(end.bias)}, {_ref(end.scale)}, {limits}) of {text}"
    if stage.table:
        text = f"lookup {_quoted(stage.table.name)} of {text}"
    return text
