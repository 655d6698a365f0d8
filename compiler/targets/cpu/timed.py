"""Programs for the host that say how long each of their calls took."""

from dovetail.isa.frozen import frozen
from dovetail.runtime.native.part import CpuPart

from ...front.source import Imported
from ...program.ir import Call, Item, Loop, Origin, Program, all_calls
from .llvm.build import FunctionBuilds, LlvmOptions
from .llvm.compile import build_program_code
from .native import part_of, prepared
from .segment import lower_graph

__all__ = ["TimedCall", "TimedPart", "Touched", "timed_part"]

Touched = tuple[str, int, int]
"""Bytes that a call may touch: whose memory, the first one, and the one after the last."""


@frozen
class TimedCall:
    """A call, or a loop of calls.

    kernel: its function; of a loop, those of its calls.  nodes: the model's that it computes.
    touched: its operands, each whole.
    """

    kernel: str
    nodes: tuple[str, ...]
    touched: tuple[Touched, ...]


@frozen
class TimedPart:
    """A part whose memory ends with the clock's value before the first call and after each."""

    part: CpuPart
    calls: tuple[TimedCall, ...]


def timed_part(imported: Imported, options: LlvmOptions) -> TimedPart:
    """A model as a timed program, by the same passes and schedules as other code for CPUs.

    Raises as ``compile_imported``.
    """
    graph, passes = prepared(imported, options.winograd)
    with FunctionBuilds(options) as builds:
        program = lower_graph(passes.run(graph), options, builds)
        code = build_program_code(program, options, builds, timed=True)
    calls = tuple(_timed(each, program) for each in program.calls)
    return TimedPart(part_of(program, code, options, []), calls)


def _timed(item: Item, program: Program) -> TimedCall:
    calls = [item] if isinstance(item, Call) else list(all_calls([item]))
    nodes = dict.fromkeys(node for call in calls for node in call.origins)
    kernels = dict.fromkeys(call.function for call in calls)
    rounds = item.count if isinstance(item, Loop) else 1
    touched = [each for call in calls for each in _touched(call, rounds, program)]
    return TimedCall("+".join(kernels), tuple(nodes), tuple(dict.fromkeys(touched)))


def _touched(call: Call, rounds: int, program: Program) -> list[Touched]:
    """The operands of a call that is done ``rounds`` times."""
    function = next(each for each in program.functions if each.name == call.function)
    found = []
    for operand, buffer in zip(call.arguments, (*function.inputs, *function.outputs), strict=True):
        place = operand.place
        size = buffer.elements * buffer.dtype.bytes
        size += sum(each.bytes * (rounds - 1) for each in place.strides if not each.depth)
        whose = place.origin.value
        if place.origin is not Origin.MEMORY:
            whose = f"{whose} {place.number}"
        found.append((whose, place.offset, place.offset + size))
    return found
