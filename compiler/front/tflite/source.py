"""Model files: what the rest of the compiler knows of TensorFlow Lite."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dovetail.isa.frozen import frozen

from ...errors import ModelError
from ...graph.emitter import Tensor
from ...graph.formulas import Term
from ...graph.ir import Graph, GraphBuilder
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.types import TensorType
from ...pipeline.limits import Budget
from ..source import Imported, InputSignature, Normalization
from .context import ImportContext
from .metadata import read_normalization
from .model import convert_subgraph
from .read_file import read_file
from .schema import ModelFile, Subgraph
from .table import CONVERTERS

__all__ = ["TfliteModel"]


@frozen(eq=False)
class TfliteModel:
    """A model as it is in a file; its first subgraph is run.

    budget: what importing it may take, every time together; None for a new one each time.
    """

    file: ModelFile
    budget: Budget | None = None

    @classmethod
    def of(cls, model: object, budget: Budget | None = None) -> "TfliteModel":
        """A model given as a file's path, its content, or as what this is.

        Raises ModelError when there is no such file, or it is not TensorFlow Lite.
        """
        if isinstance(model, TfliteModel):
            return model
        if isinstance(model, bytes):
            return cls(read_file(model), budget)
        path = Path(str(model))
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise ModelError(f"no model file {path}") from None
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error}") from None
        try:
            return cls(read_file(content), budget)
        except ModelError as error:
            raise ModelError(f"{path} is not a TensorFlow Lite model: {error}") from None

    @property
    def main(self) -> Subgraph:
        """The subgraph that is run."""
        return self.file.subgraphs[0]

    @property
    def name(self) -> str:
        """The model's name in the file; may be empty."""
        return self.main.name

    @property
    def inputs(self) -> tuple[InputSignature, ...]:
        """The inputs, with the shapes that TensorFlow Lite gives them."""
        return self._signatures(self.main.inputs)

    @property
    def outputs(self) -> tuple[InputSignature, ...]:
        """The outputs, with the shapes that the file says."""
        return self._signatures(self.main.outputs)

    def _signatures(self, numbers: Sequence[int]) -> tuple[InputSignature, ...]:
        tensors = (self.main.tensors[number] for number in numbers)
        return tuple(
            InputSignature(name, each.shape, str(each.dtype))
            for name, each in zip(_names(self.main, numbers), tensors, strict=True)
        )

    @property
    def constant_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the constants of the subgraph that is run."""
        return tuple(each.shape for each in self.main.tensors if self.file.is_constant(each))

    @property
    def quantizes(self) -> bool:
        """True if a tensor is quantised."""
        return any(each.quantization is not None for each in self.main.tensors)

    @property
    def normalization(self) -> Normalization | None:
        """How pictures are prepared, as ``Normalized``."""
        return read_normalization(self.file.metadata)

    def open_sizes(self) -> tuple[InputSignature, ...]:
        """None: sizes that the file leaves open are 1, as in TensorFlow Lite."""
        return ()

    def bind(self, dims: Mapping[str, int]) -> "TfliteModel":
        """Itself.  Raises ModelError for any dimension: the format has no names of them."""
        if dims:
            raise ModelError(
                f"dimensions {sorted(dims)} are bound; a TensorFlow Lite model has none with a name"
            )
        return self

    def to_graph_and_rest(self, batch: int | None = None) -> Imported:
        """As ``to_graph``."""
        return self.to_graph(batch)

    def to_graph(self, batch: int | None = None) -> Imported:
        """The graph of the model.

        batch: of no meaning, as all sizes are fixed.
        Raises ModelError for a malformed model, UnsupportedOperatorError for an operator or a type
        that there is no code for, NeedsValueError when a shape depends on data.
        """
        builder, budget = GraphBuilder(), self.budget or Budget()
        context = ImportContext(builder, file=self.file, budget=budget, converters=CONVERTERS)
        budget.grant(self.file.size)
        arguments = []
        for each in self.inputs:
            kind = TensorType(tuple(size or 0 for size in each.shape), each.dtype)
            arguments.append(Term(context, Tensor(builder.input(each.name, kind), kind)))
        outputs, values = convert_subgraph(context, self.main, arguments)
        kinds = {each.name: each.kind for each in self.main.operations}
        return Imported(_graph(builder, self.main, outputs, values), kinds)


def _graph(
    builder: GraphBuilder, subgraph: Subgraph, outputs: Sequence[Term], values: Mapping[int, Term]
) -> Graph:
    """The nodes that the outputs depend on, under the file's names; all inputs, read or not."""
    renamed: dict[str, str] = {}
    for number, value in values.items():
        name = subgraph.tensors[number].name
        if name not in renamed.values() and value.tensor.name not in builder.inputs:
            renamed.setdefault(value.tensor.name, name)
    builder.rename(renamed)
    names = _names(subgraph, subgraph.outputs, builder.inputs)
    made = [renamed.get(each.tensor.name, each.tensor.name) for each in outputs]
    builder.export(made, names)
    return EliminateDead().run(builder.build(tuple(dict.fromkeys(names))))


def _names(subgraph: Subgraph, numbers: Sequence[int], taken: Sequence[str] = ()) -> list[str]:
    """The names of tensors; one that is taken gets a number."""
    found: list[str] = []
    for number in numbers:
        stem = name = subgraph.tensors[number].name
        count = 0
        while name in found or name in taken:
            count += 1
            name = f"{stem}:{count}"
        found.append(name)
    return found
