"""Defaults of attributes that a node lacks, compared with the schemas of ONNX."""

import ast
import inspect
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx.defs import OpSchema, get_all_schemas_with_history

from dovetail.compiler.front.onnx.activations import ACTIVATIONS
from dovetail.compiler.front.onnx.table import CONVERTERS

READERS = {"integer", "integers", "real", "reals", "text", "texts"}
PACKAGE = "dovetail.compiler.front.onnx"
Key = tuple[str, str]


def schema_defaults() -> dict[Key, list[Any]]:
    """By operator and attribute, the defaults that it has or had; none for one without."""
    found: dict[Key, list[Any]] = defaultdict(list)
    for schema in get_all_schemas_with_history():
        for name, each in schema.attributes.items():
            has = each.type != OpSchema.AttrType.GRAPH and each.default_value.type
            value = onnx.helper.get_attribute_value(each.default_value) if has else None
            if value is not None:
                found[f"{schema.domain}.{schema.name}".lstrip("."), name].append(value)
    return found


def functions(function: Callable[..., Any], seen: set[str]) -> Iterator[Callable[..., Any]]:
    """A function, and those of the importer that it names, directly or not."""
    name = f"{function.__module__}.{function.__qualname__}"
    if name in seen or not function.__module__.startswith(PACKAGE):
        return
    seen.add(name)
    yield function
    around = vars(sys.modules[function.__module__])
    closure = [each.cell_contents for each in function.__closure__ or ()]
    for each in (*(around.get(name) for name in function.__code__.co_names), *closure):
        if inspect.isfunction(each):
            yield from functions(each, seen)


@cache
def own_defaults(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Attributes that a function reads by literal names, with literal defaults."""
    found: list[tuple[str, Any]] = []
    source = textwrap.dedent(inspect.getsource(function))
    if source.startswith('"'):  # a line of a table
        source = f"{{{source}}}"
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("node"), attr=attr),
                args=[ast.Constant(value=str() as name), default],
            ) if attr in READERS:
                with suppress(ValueError):  # it depends on the node
                    found.append((name, ast.literal_eval(default)))
    return found


def same(own: Any, value: Any) -> bool:
    """True if two defaults are equal; floats are float32 in schemas."""
    if isinstance(value, bytes):
        return own == value.decode()
    if isinstance(value, float):
        return np.float32(own) == np.float32(value)
    return own == (tuple(value) if isinstance(value, list) else value)


ONLY_GIVEN = {("Clip", "min"), ("Clip", "max")}
"""Read where the node has them."""


def test_every_default_is_that_of_the_schema() -> None:
    known, wrong, checked = schema_defaults(), [], set()
    for kind, converter in (*CONVERTERS.items(), *ACTIVATIONS.items()):
        for function in functions(inspect.unwrap(converter), set()):
            for name, own in own_defaults(function):
                wanted = known.get((kind, name))
                if wanted and (kind, name) not in ONLY_GIVEN:
                    checked.add((kind, name))
                    if not any(same(own, value) for value in wanted):
                        wrong.append(f"{kind}.{name}: {own!r}, in ONNX {wanted}")
    assert not wrong, "\n".join(wrong)
    assert len(checked) > 100, len(checked)
