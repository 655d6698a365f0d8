"""Model files: what the rest of the compiler knows of ONNX."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.emitter import Tensor
from ...graph.ir import Array, Graph, GraphBuilder
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.types import TensorType
from ...pipeline.limits import Budget
from ..source import Imported, InputSignature, NeedsValueError
from .context import Value
from .element_types import ELEMENT_TYPES, type_name
from .model import ImportRecord, import_model
from .node import is_quantized_kind
from .signatures import bind_dimensions, input_signatures, open_shape_error
from .split import early_model, late_model

__all__ = ["ModelSource", "SourceModel"]


CONVERTER = "convert it with: python -m tf2onnx.convert"
OTHER_FORMATS = {
    ".keras": f"{CONVERTER} --keras FILE --output FILE.onnx",
    ".h5": f"{CONVERTER} --keras FILE --output FILE.onnx",
    ".pb": f"{CONVERTER} --saved-model FOLDER --output FILE.onnx",
    ".dvt": "it is a compiled module: dovetail run or dovetail inspect takes it",
}
"""Advice on files of other kinds, by their suffix."""


@frozen(eq=False)
class SourceModel:
    """A model as it is in a file.

    budget: what importing it may take, every time together; None for a new one each time.
    """

    proto: onnx.ModelProto
    budget: Budget | None = None

    @classmethod
    def load(cls, path: Path, budget: Budget | None = None) -> "SourceModel":
        """Read a model file.

        Raises ModelError when there is none or it is not ONNX.
        """
        try:
            model = onnx.load(path)
        except FileNotFoundError:
            raise ModelError(f"no model file {path}") from None
        except MemoryError:
            raise
        except Exception as error:
            # The reader raises its own classes, OSError and UnicodeDecodeError, by what is wrong.
            raise _not_onnx(path, f": {error}") from None
        if not model.graph.node:
            raise _not_onnx(path, ", or it has no nodes")
        return cls(model, budget)

    @classmethod
    def of(cls, model: "ModelSource", budget: Budget | None = None) -> "SourceModel":
        """A model given as a file's path or content, as ONNX's own object, or as what this is.

        Raises ModelError for anything else, and when a file or its content is not ONNX.
        """
        if isinstance(model, SourceModel):
            return model
        if isinstance(model, str | Path):
            return cls.load(Path(model), budget)
        if isinstance(model, bytes):
            try:
                return replace(cls.from_bytes(model), budget=budget)
            except ValueError as error:
                raise ModelError(str(error)) from None
        if not isinstance(model, onnx.ModelProto):
            raise ModelError(
                f"{type(model).__name__} is not a model; required the path of a file, its content, "
                "an onnx.ModelProto, or a program of torch.export"
            )
        return cls(model, budget)

    @classmethod
    def from_bytes(cls, content: bytes) -> "SourceModel":
        """A model from the content of a file.  Raises ValueError when it is not ONNX."""
        try:
            return cls(onnx.load_model_from_string(content))
        except Exception as error:
            raise ValueError(f"not an ONNX model: {error}") from None

    def to_bytes(self) -> bytes:
        """The content of a file."""
        return bytes(self.proto.SerializeToString())

    @property
    def name(self) -> str:
        """The model's name in the file; may be empty."""
        return str(self.proto.graph.name)

    @property
    def inputs(self) -> tuple[InputSignature, ...]:
        """The inputs that have no value of their own.  Raises as ``input_signatures``."""
        return input_signatures(self.proto)

    @property
    def outputs(self) -> tuple[InputSignature, ...]:
        """The outputs.

        Raises UnsupportedOperatorError for one that is not a tensor, ModelError for an element type
        that does not exist.
        """
        found = []
        for value in self.proto.graph.output:
            tensor = value.type.tensor_type
            if not value.type.HasField("tensor_type"):
                raise UnsupportedOperatorError(f"output {value.name!r} is not a tensor")
            try:
                dtype = DType(str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
            except (KeyError, ValueError):
                kind = type_name(tensor.elem_type)
                raise ModelError(f"output {value.name!r} has elements of type {kind}") from None
            shape = tuple(dim.dim_value or None for dim in tensor.shape.dim)
            found.append(InputSignature(value.name, shape, str(dtype)))
        return tuple(found)

    @property
    def quantizes(self) -> bool:
        """True if a node quantises or computes on quantised tensors."""
        return any(is_quantized_kind(node.op_type) for node in self.proto.graph.node)

    def bind(self, dims: Mapping[str, int]) -> "SourceModel":
        """The model with symbolic dimensions fixed.  Raises as ``bind_dimensions``."""
        return replace(self, proto=bind_dimensions(self.proto, dims)) if dims else self

    def dimensions(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """The sizes of symbolic dimensions, by those of ``inputs``."""
        sizes = {}
        for value in self.proto.graph.input:
            if value.name in inputs:
                dims = value.type.tensor_type.shape.dim
                for dim, size in zip(dims, inputs[value.name].shape, strict=False):
                    if dim.dim_param:
                        sizes[dim.dim_param] = size
        return sizes

    def open_sizes(self) -> tuple[InputSignature, ...]:
        """The inputs whose shape is not fixed."""
        return tuple(each for each in self.inputs if None in each.shape)

    @property
    def declared(self) -> Mapping[str, DType | None]:
        """The element types of all inputs by name; None of those that are not tensors."""
        return {
            each.name: ELEMENT_TYPES.get(each.type.tensor_type.elem_type)
            for each in self.proto.graph.input
        }

    def convert(
        self, inputs: Mapping[str, Value], builder: GraphBuilder, resolve: Callable[[str], Array]
    ) -> tuple[tuple[str, Value], ...]:
        """Add the model to a graph, as ``import_model``."""
        return import_model(self.proto, inputs, builder, resolve, budget=self.budget)

    def to_graph_and_rest(self, batch: int | None = None) -> Imported:
        """As ``to_graph``, of all but the nodes whose shapes depend on data and those after."""
        roots, early = set[str](), self
        while True:
            try:
                found = early.to_graph(batch)
                break
            except NeedsValueError as error:
                if error.output in roots:
                    raise
                roots.add(error.output)
                early = replace(self, proto=early_model(self.proto, roots))
                if not early.proto.graph.output:
                    raise
        outputs = tuple(value.name for value in self.proto.graph.output)
        if not roots:
            return Imported(found.graph, found.kinds, None, outputs)
        late = SourceModel(late_model(self.proto, roots, found.graph.types))
        early_names = {node_name(each) for each in early.proto.graph.node}
        kinds = {node_name(each): each.op_type for each in late.proto.graph.node}
        own = {name: kind for name, kind in kinds.items() if name not in early_names}
        return Imported(found.graph, found.kinds, late, outputs, own)

    def to_graph(self, batch: int | None = None) -> Imported:
        """The graph of a model whose shapes are fixed.

        batch: the size of an open first dimension of inputs.
        Raises ModelError for open sizes and a malformed model, UnsupportedOperatorError for an
        operator or a type that there is no code for, NeedsValueError when a shape depends on data.
        """
        builder, values = GraphBuilder(), {}
        for each in self.inputs:
            shape = tuple(
                batch if size is None and axis == 0 else size
                for axis, size in enumerate(each.shape)
            )
            fixed = tuple(size for size in shape if size is not None)
            if len(fixed) < len(shape):
                raise open_shape_error(self.proto, each.name, shape)
            kind = TensorType(fixed, each.dtype)
            values[each.name] = Tensor(builder.input(each.name, kind), kind)
        record = ImportRecord()
        outputs = import_model(self.proto, values, builder, None, record, self.budget)
        builder.rename(record.tensors)
        return Imported(_graph(builder, outputs, record.tensors), record.kinds)


def _not_onnx(path: Path, problem: str) -> ModelError:
    """The error for a file, with what to do where its suffix tells of what kind it is."""
    how = OTHER_FORMATS.get(path.suffix.lower(), "")
    if path.suffix.lower() not in ("", ".dvt") and how:
        how += "; a float model then wants dovetail quantize, or --target cpu"
    return ModelError(f"{path} is not an ONNX model{f'; {how}' if how else problem}")


ModelSource = Path | str | bytes | onnx.ModelProto | SourceModel


def node_name(proto: onnx.NodeProto) -> str:
    """Name by which the graph's nodes refer to ``proto``."""
    return str(proto.name or next(filter(None, proto.output), proto.op_type))


def _graph(
    builder: GraphBuilder, outputs: tuple[tuple[str, Any], ...], renamed: Mapping[str, str]
) -> Graph:
    """The nodes that the outputs depend on; all inputs, whether they are read or not."""
    for name, value in outputs:
        if not isinstance(value, Tensor) or value.narrow is not None:
            raise UnsupportedOperatorError(f"output {name!r} is not a tensor of numbers")
    names = [name for name, _ in outputs]
    tensors = [
        value.name if value.name in builder.inputs else renamed.get(value.name, value.name)
        for _, value in outputs
    ]
    builder.export(tensors, names)
    return EliminateDead().run(builder.build(tuple(dict.fromkeys(names))))
