"""One loop function to one LLVM function.

``void name(ptr context, ptr workspace, ptr input..., ptr output...)``: context is the thread
pool's, workspace holds the buffers that are too large for the stack.
"""

from dovetail.isa.frozen import frozen

from ....errors import GraphError
from ....loops.ir import Function
from .context import Context, Place
from .emitter import Emitter, ModuleText
from .optimize import Effort
from .statements import emit

__all__ = ["Signature", "write_function"]


@frozen
class Signature:
    """Facts about a function that a caller needs.

    symbol: the name in machine code.  workspace_bytes: that a call needs, 64-byte aligned.
    effort: how LLVM is to optimise it.
    """

    symbol: str
    function: Function
    workspace_bytes: int
    effort: Effort


def write_function(
    module: ModuleText, function: Function, symbol: str, threads: int = 1
) -> Signature:
    """Define ``function`` in ``module``.  Raises GraphError for what CPUs cannot run."""
    e = Emitter(module)
    context = Context(e, function.name, threads=threads, symbol=symbol)
    buffers = (*function.inputs, *function.outputs)
    for number, buffer in enumerate(buffers):
        if buffer.name in context.places:
            raise GraphError(f"{function.name}: two parameters are called {buffer.name}")
        context.places[buffer.name] = Place(buffer, f"%p{number}")
    emit(context, function.body)
    parameters = ["ptr %context", "ptr noalias %workspace"]
    for number in range(len(function.inputs)):
        parameters.append(f"ptr noalias readonly %p{number}")
    for number in range(len(function.inputs), len(buffers)):
        parameters.append(f"ptr noalias %p{number}")
    module.define(
        symbol, f"define void @{symbol}({', '.join(parameters)}) #0 {{\n{e.body()}\n  ret void\n}}"
    )
    effort = Effort.FULL if context.statistics.scalar_loops else Effort.LIGHT
    return Signature(symbol, function, context.workspace_bytes, effort)
