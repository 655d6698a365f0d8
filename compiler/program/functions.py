"""The functions and constants that the calls of a program share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from ..graph.ir import Graph, Node
from ..loops.expressions import Binary, BinaryFunction, Buffer, Variable
from ..loops.intrinsic import Intrinsic
from ..loops.ir import For, Function, Let, LoopKind, Store, Update, loops
from ..loops.text import to_text
from ..loops.traverse import variables, walk
from ..loops.work import work
from ..options import MOST_WORK
from ..schedule.steps.threads import over_threads
from .ir import Operand, Origin, Place

__all__ = ["Kernel", "Lowering", "Shared", "copying", "first_shared"]


class Kernel(Protocol):
    """The loop program of a group of nodes."""

    @property
    def function(self) -> Function:
        """Its buffers are the group's tensors, in their order."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Tensors that it reads."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Tensors that it computes."""


@frozen
class Lowering:
    """Parts of a program's lowering that depend on the target.

    lower: gives the loop program of a group of nodes; raises UnsupportedOperatorError.
    intrinsics: that functions may call.  threads: that share the loops.  most_work: elements that
    all loops together may read and write.  observe: called with each function of the program as
    soon as it is known.
    """

    lower: Callable[[Graph, Sequence[Node]], Kernel]
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)
    threads: int = 1
    most_work: int = MOST_WORK
    observe: Callable[[Function], object] = field(default=lambda function: None)


@dataclass(slots=True)
class Shared:
    """Functions by their text, their works by name, constants, and the names of tensors."""

    lowering: Lowering
    functions: dict[str, Function] = field(default_factory=dict)
    works: dict[str, int] = field(default_factory=dict)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def function(self, function: Function) -> Function:
        """A function that is equal to ``function``, except for its name and for threads."""
        text = to_text(replace(function, name=""))
        if text not in self.functions:
            name = f"kernel{len(self.functions)}"
            self.works[name] = work(function)
            if self.lowering.threads > 1:
                function = over_threads(function, self.lowering.intrinsics)
            self.functions[text] = replace(function, name=name)
            self.lowering.observe(self.functions[text])
        return self.functions[text]

    def name(self, wanted: str) -> str:
        """``wanted``, or more where another tensor of the program is called so."""
        while wanted in self.names:
            wanted += "'"
        self.names.add(wanted)
        return wanted

    def constant(self, name: str, array: NDArray[Any]) -> Operand:
        """A constant that is called ``name``."""
        self.constants[name] = array
        return Operand(name, Place(Origin.CONSTANT, len(self.constants) - 1))


def copying(elements: int, dtype: DType) -> Function:
    """A function that copies a tensor."""
    source, target = Buffer("in0", (elements,), dtype), Buffer("out0", (elements,), dtype)
    i = Variable("i")
    body = loops((("i", elements),), Store(target, (i,), source[i]))
    return Function("copy", (source,), (target,), body)


def first_shared(function: Function, buffer: str) -> int:
    """The first dimension of ``buffer`` that threads share out among them as they write it.

    What a loop over several loops divides by last runs fastest; the first of them decides which
    thread writes where.  0 where no threads share the writing.
    """
    for loop in walk(function.body):
        if not isinstance(loop, For) or loop.kind is not LoopKind.PARALLEL:
            continue
        leading = {loop.variable}
        for stmt in walk(loop.body):
            match stmt:
                case Let(variable=Variable(name=name), value=value):
                    fast = isinstance(value, Binary) and value.function is BinaryFunction.MOD
                    if not fast and leading & variables(value):
                        leading.add(name)
                case Store() | Update() if stmt.buffer.name == buffer:
                    for dimension, index in enumerate(stmt.indices):
                        if leading & variables(index):
                            return dimension
                case _:
                    pass
    return 0
