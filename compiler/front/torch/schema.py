"""The program of a ``.pt2`` file: JSON whose form is checked, as immutable records.

Source: PyTorch, torch/_export/serde/schema.py, versions 8.x (torch 2.8 to 2.15).
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from .forms import field_of, list_of, said, table_of
from .regions import without_regions

__all__ = ["Argument", "Node", "Program", "Spec", "TensorMeta", "element_type", "read_meta"]

MAJOR = 8
"""The schema's version that is read: another one breaks readers, another minor one does not."""

ELEMENT_TYPES: Mapping[int, DType] = {
    1: DType.UINT8,
    2: DType.INT8,
    3: DType.INT16,
    4: DType.INT32,
    5: DType.INT64,
    6: DType.FLOAT16,
    7: DType.FLOAT32,
    8: DType.FLOAT64,
    12: DType.BOOL,
    13: DType.BFLOAT16,
    28: DType.UINT16,
    34: DType.UINT32,
    35: DType.UINT64,
}
OTHER_TYPES: Mapping[int, str] = {
    9: "complex32",
    10: "complex64",
    11: "complex128",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
}


@frozen
class Argument:
    """kind: the name of the union's member (``as_tensor``, ``as_int``, ...); value: its JSON."""

    kind: str
    value: Any

    @property
    def name(self) -> str:
        """Name of the tensor or the number; empty for anything else."""
        given = self.value
        found = given.get("name") or given.get("as_name") if isinstance(given, dict) else None
        return found if isinstance(found, str) else ""


@frozen
class Node:
    """A call of an operator; ``target`` is its name, ``torch.ops.aten.add.Tensor``."""

    target: str
    name: str
    inputs: tuple[tuple[str, Argument], ...]
    outputs: tuple[Argument, ...]

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.target.removeprefix('torch.ops.')})"


@frozen
class TensorMeta:
    """Element type and sizes: integers, or the text of an expression."""

    dtype: DType
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    offset: int | str


@frozen
class Spec:
    """Role of an input or output of the graph.

    kind: ``user_input``, ``parameter``, ``buffer_mutation``, ...; target: what it belongs to, the
    name of a parameter, buffer, constant or mutated input.
    """

    kind: str
    argument: Argument
    target: str = ""

    @property
    def tensor(self) -> str:
        """The name of the tensor, or of the number; empty for anything else."""
        return self.argument.name


@frozen
class Program:
    """An exported program; metas: of tensors by name, not yet checked."""

    nodes: tuple[Node, ...]
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    metas: Mapping[str, Any]
    integers: Mapping[str, Any] = field(default_factory=dict)
    """The JSON of symbolic integers' expressions, by name."""
    ranges: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    """Least and largest size of symbols."""

    @classmethod
    def read(cls, document: object) -> "Program":
        """From JSON.  Raises ModelError for another form, saying where."""
        version = field_of(table_of(document, "schema_version"), "major", int)
        if version != MAJOR:
            raise ModelError(
                f"schema version {version} of torch.export; required {MAJOR} (torch 2.8 to 2.15)"
            )
        module = table_of(document, "graph_module")
        graph, signature = without_regions(table_of(module, "graph")), table_of(module, "signature")
        nodes = tuple(map(_node, list_of(graph, "nodes")))
        inputs = tuple(map(_spec, list_of(signature, "input_specs")))
        outputs = tuple(map(_spec, list_of(signature, "output_specs")))
        metas, integers = (table_of(graph, name) for name in ("tensor_values", "sym_int_values"))
        ranges = {
            name: _range(each) for name, each in table_of(document, "range_constraints").items()
        }
        return cls(nodes, inputs, outputs, metas, integers, ranges)

    def meta(self, name: str) -> TensorMeta:
        """The type of a tensor.  Raises ModelError when there is none, or it is of another form."""
        if name not in self.metas:
            raise ModelError(f"tensor {name!r} has no type in the file")
        return read_meta(name, self.metas[name])


def read_meta(name: str, document: object) -> TensorMeta:
    """The type of the tensor ``name``.

    Raises ModelError for another form, UnsupportedOperatorError for a sparse tensor and for an
    element type that the graph does not have.
    """
    number, layout = field_of(document, "dtype", int), field_of(document, "layout", int)
    if layout != 7:
        raise UnsupportedOperatorError(f"tensor {name!r} has layout {layout}; required dense ones")
    sizes = tuple(map(_size, list_of(document, "sizes")))
    strides = tuple(map(_size, list_of(document, "strides")))
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise ModelError(f"tensor {name!r} has sizes {list(sizes)}; required 0 or more")
    offset = _size(table_of(document, "storage_offset"))
    return TensorMeta(element_type(number, name), sizes, strides, offset)


def element_type(number: int, name: str) -> DType:
    """The element type of torch's number.

    Raises UnsupportedOperatorError when the graph does not have it."""
    if number not in ELEMENT_TYPES:
        said = OTHER_TYPES.get(number, str(number))
        raise UnsupportedOperatorError(f"tensor {name!r} has elements of type {said}")
    return ELEMENT_TYPES[number]


def _range(document: object) -> tuple[int, int | None]:
    low, high = (
        document.get(name) if isinstance(document, dict) else None
        for name in ("min_val", "max_val")
    )
    return low if type(low) is int else 1, high if type(high) is int else None


def _node(document: object) -> Node:
    target = field_of(document, "target", str)
    outputs = tuple(map(_argument, list_of(document, "outputs")))
    inputs = tuple(
        (field_of(each, "name", str), _argument(table_of(each, "arg")))
        for each in list_of(document, "inputs")
    )
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str) or not name:
        name = next((str(_named(each)) for each in outputs), target)
    return Node(target, name, inputs, outputs)


def _named(argument: Argument) -> object:
    value = argument.value
    value = value[0] if isinstance(value, list) and value else value
    return value.get("name", argument.kind) if isinstance(value, dict) else argument.kind


def _argument(document: object) -> Argument:
    if not isinstance(document, dict):
        raise ModelError(f"an argument is {said(document)}; required an object")
    if len(document) != 1:
        raise ModelError(f"an argument has {len(document)} kinds, {said(document)}; required 1")
    ((kind, value),) = document.items()
    return Argument(kind, value)


TARGETS = ("parameter_name", "buffer_name", "tensor_constant_name", "user_input_name", "name")


def _spec(document: object) -> Spec:
    member = _argument(document)
    fields = member.value
    if not isinstance(fields, dict):
        raise ModelError(f"{member.kind} of the signature is {said(fields)}; required an object")
    target = next((fields[name] for name in TARGETS if name in fields), "")
    if not isinstance(target, str):
        raise ModelError(f"{member.kind} of the signature is of {said(target)}; required a name")
    given = fields.get("arg", {"as_none": True})
    plain = isinstance(given, dict) and set(given) == {"name"}
    return Spec(member.kind, Argument("as_tensor", given) if plain else _argument(given), target)


def _size(document: object) -> int | str:
    member = _argument(document)
    if member.kind == "as_int" and type(member.value) is int:
        return member.value
    if member.kind == "as_expr":
        return field_of(member.value, "expr_str", str)
    raise ModelError(f"a size is {said(document)}; required a number or an expression")
