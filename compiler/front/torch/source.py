"""Model files: what the rest of the compiler knows of torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path

from ...errors import ModelError, UnsupportedOperatorError
from ...graph.ir import Array, Graph, GraphBuilder
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.types import TensorType
from ...pipeline.limits import Budget
from ..source import Imported, InputSignature
from .archive import Archive, archive_of, open_archive
from .live import saved
from .model import STORED, Result, convert_program
from .schema import Program, Spec
from .symbols import evaluate, symbols_of
from .views import VIEWS
from .weights import Weights

__all__ = ["TorchModel"]


@dataclass(frozen=True, eq=False)
class TorchModel:
    """A program of ``torch.export`` as it is in a file.

    sizes: of symbolic dimensions.  budget: what importing it may take; None for a new one.

    Buffers that the program writes to are inputs too, after the others, and their new values are
    outputs, called NAME.updated; ``state`` has the values that the file has.
    """

    archive: Archive
    program: Program
    sizes: Mapping[str, int]
    budget: Budget | None = None

    @classmethod
    def of(cls, model: object, budget: Budget | None = None) -> "TorchModel":
        """From a file's path or content, or an ``ExportedProgram``.

        Raises ModelError when it is not a program of torch.
        """
        if isinstance(model, TorchModel):
            return model
        if isinstance(model, str | Path):
            archive = open_archive(Path(model))
        else:
            archive = archive_of(model if isinstance(model, bytes) else saved(model))
        try:
            program = Program.read(archive.json(archive.program_name()))
        except UnsupportedOperatorError:
            raise
        except ModelError as error:
            raise ModelError(f"{archive.path}: {error}") from None
        return cls(archive, program, {}, budget)

    @property
    def name(self) -> str:
        """The model's name in the file."""
        return self.archive.program_name().removeprefix("models/").removesuffix(".json")

    @property
    def quantizes(self) -> bool:
        """True if a node quantises or dequantises."""
        return any("quantized_decomposed" in node.target for node in self.program.nodes)

    @cached_property
    def inputs(self) -> tuple[InputSignature, ...]:
        """The program's own inputs that are tensors, then the buffers that it writes to."""
        return tuple(self._signature(spec) for spec in self._inputs(self._written))

    @property
    def outputs(self) -> tuple[InputSignature, ...]:
        """The program's own outputs that are tensors; sizes that are open are None."""
        return tuple(
            self._signature(spec)
            for spec in self.program.outputs
            if spec.kind == "user_output" and spec.argument.kind == "as_tensor"
        )

    @property
    def operators(self) -> tuple[str, ...]:
        """The operator of each node, without its overload."""
        targets = (node.target.removeprefix("torch.ops.") for node in self.program.nodes)
        return tuple(".".join(each.split(".")[:2]) for each in targets)

    @property
    def parameters(self) -> int:
        """Elements of the parameters, buffers and constants."""
        kept = (spec for spec in self.program.inputs if spec.kind in STORED)
        metas = (self.program.meta(spec.tensor).sizes for spec in kept)
        return sum(prod(size for size in sizes if isinstance(size, int)) for sizes in metas)

    def dimensions(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """The sizes of symbolic dimensions, by those of ``inputs``."""
        sizes = {}
        for spec in self._inputs(frozenset()):
            if spec.tensor in inputs:
                given = self.program.meta(spec.tensor).sizes
                for size, own in zip(given, inputs[spec.tensor].shape, strict=False):
                    names = symbols_of(size) if isinstance(size, str) else ()
                    if len(names) == 1 and evaluate(str(size), {names[0]: own}) == own:
                        sizes[names[0]] = own
        return sizes

    def _inputs(self, written: frozenset[str]) -> list[Spec]:
        found = [
            spec
            for spec in self.program.inputs
            if spec.argument.kind == "as_tensor"
            and (spec.kind == "user_input" or spec.target in written)
        ]
        return sorted(found, key=lambda spec: spec.kind != "user_input")

    def _signature(self, spec: Spec) -> InputSignature:
        meta = self.program.meta(spec.tensor)
        shape = tuple(
            size if isinstance(size, int) else evaluate(size, self.sizes) for size in meta.sizes
        )
        name = spec.tensor if spec.kind.startswith("user_") else spec.target
        return InputSignature(name, shape, str(meta.dtype))

    @cached_property
    def _written(self) -> frozenset[str]:
        """Buffers that the program writes to: as the signature says, or by operators in place,
        through views too."""
        found = {spec.target for spec in self.program.outputs if spec.kind == "buffer_mutation"}
        by_tensor = {
            spec.tensor: spec.target for spec in self.program.inputs if spec.kind in STORED
        }
        for node in self.program.nodes:
            operator = ".".join(node.target.removeprefix("torch.ops.").split(".")[:2])
            first = node.inputs[0][1] if node.inputs else None
            if first is None or first.kind != "as_tensor" or first.name not in by_tensor:
                continue
            if operator in VIEWS:
                by_tensor.update({each.name: by_tensor[first.name] for each in node.outputs})
            elif operator.endswith("_") and not operator.endswith("__"):
                found.add(by_tensor[first.name])
        return frozenset(found)

    def state(self) -> dict[str, Array]:
        """The file's values of the buffers that the program writes to, by the inputs' names."""
        weights = Weights(self.archive)
        named = [each for each in self._inputs(self._written) if each.kind != "user_input"]
        return {spec.target: weights[spec.target] for spec in named}

    def open_sizes(self) -> tuple[InputSignature, ...]:
        """The inputs whose shape is not fixed."""
        return tuple(each for each in self.inputs if None in each.shape)

    def symbols(self) -> tuple[str, ...]:
        """Names of the symbolic dimensions of the inputs."""
        found: dict[str, None] = {}
        for spec in self._inputs(frozenset()):
            for size in self.program.meta(spec.tensor).sizes:
                if isinstance(size, str):
                    found.update(dict.fromkeys(symbols_of(size)))
        return tuple(found)

    def bind(self, dims: Mapping[str, int]) -> "TorchModel":
        """The model with symbolic dimensions fixed.

        Raises ModelError for a name that no input's dimension has, and for a size out of range.
        """
        known = self.symbols()
        for name, size in dims.items():
            if name not in known:
                listed = ", ".join(map(repr, known)) or "none"
                raise ModelError(
                    f"no input has a dimension {name!r}; symbolic dimensions: {listed}"
                )
            low, high = self.program.ranges.get(name, (1, None))
            if size < max(low, 1) or (high is not None and size > high):
                most = "" if high is None else f" to {high}"
                raise ModelError(
                    f"dimension {name!r} is {size}; the model takes {max(low, 1)}{most}"
                )
        return replace(self, sizes={**self.sizes, **dims}) if dims else self

    def to_graph(self, batch: int | None = None) -> Imported:
        """As ``Source``."""
        model = self if batch is None else self._with_batch(batch)
        opened = model.open_sizes()
        if opened:
            sizes = ", ".join("?" if n is None else str(n) for n in opened[0].shape)
            listed = ", ".join(name for name in self.symbols() if name not in self.sizes)
            raise ModelError(
                f"input {opened[0].name!r} has shape [{sizes}]; bind its open sizes (--dim "
                f"NAME=SIZE; names: {listed}), or export the model with fixed ones"
            )
        written = model._written
        while True:
            builder = GraphBuilder()
            result = model._converted(builder, written)
            if result.changed <= written:
                return Imported(_graph(builder, result), result.kinds)
            written |= result.changed

    def _converted(self, builder: GraphBuilder, written: frozenset[str]) -> Result:
        budget = self.budget or Budget()
        budget.grant(sum(map(len, self.archive.members.values())))
        inputs = {}
        for spec in self._inputs(written):
            each = self._signature(spec)
            kind = TensorType(tuple(size or 0 for size in each.shape), each.dtype)
            inputs[spec.tensor] = builder.input(each.name, kind)
        weights = Weights(self.archive)
        return convert_program(self.program, weights, builder, inputs, self.sizes, budget)

    def _with_batch(self, batch: int) -> "TorchModel":
        """With open first dimensions that are symbols of this size."""
        sizes = dict(self.sizes)
        for spec in self._inputs(frozenset()):
            first = self.program.meta(spec.tensor).sizes[:1]
            names = symbols_of(first[0]) if first and isinstance(first[0], str) else ()
            if len(names) == 1 and evaluate(str(first[0]), {names[0]: batch}) == batch:
                sizes.setdefault(names[0], batch)
        return replace(self, sizes=sizes)

    def to_graph_and_rest(self, batch: int | None = None) -> Imported:
        """As ``to_graph``: there are no shapes that depend on data."""
        return self.to_graph(batch)


def _graph(builder: GraphBuilder, result: Result) -> Graph:
    """The nodes that the outputs depend on; all inputs, whether they are read or not.

    An output that has the name of an input, or of an output before it, is called NAME.out.
    """
    builder.rename(result.tensors)
    names = list[str]()
    for name, _ in result.outputs:
        while name in builder.inputs or name in names:
            name += ".out"
        names.append(name)
    tensors = [
        term.tensor.name
        if term.tensor.name in builder.inputs
        else result.tensors.get(term.tensor.name, term.tensor.name)
        for _, term in result.outputs
    ]
    builder.export(tensors, names)
    return EliminateDead().run(builder.build(tuple(dict.fromkeys(names))))
