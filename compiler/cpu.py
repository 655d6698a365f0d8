"""The ``cpu`` device: machine code, models specialised as they run, integer graphs interpreted."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime.errors import ModuleError
from dovetail.runtime.module import Module

from .errors import GraphError
from .executor.executor import Executor
from .graph.interpreter import run
from .graph.ir import Graph, Node
from .graph.ops import OPERATORS, Operator, TensorType
from .native import NativeModule, load_native

Array = NDArray[Any]

__all__ = ["CpuDevice", "graph_from_bytes", "graph_to_bytes"]


LOADED = 8
"""Modules that a device keeps ready to run."""


class CpuDevice:
    """Runs modules compiled for ``cpu``."""

    def __init__(self) -> None:
        self._loaded: dict[int, tuple[Module, NativeModule]] = {}

    def run(self, module: Module, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the module's code, or evaluate its graph; outputs by name.

        Raises ModuleError when the module cannot be read, TargetError when this CPU cannot run it.
        """
        if "graph" not in module.sections:
            return self._run_native(module, inputs)
        graph = graph_from_bytes(module.sections["graph"])
        values = run(graph, inputs)
        return {name: np.ascontiguousarray(values[name]) for name in graph.outputs}

    def _run_native(self, module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if id(module) not in self._loaded:
            if len(self._loaded) >= LOADED:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[id(module)] = module, load_native(module)
        _, native = self._loaded[id(module)]
        if isinstance(native, Executor):
            return native.run(inputs)
        arrays = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        results = native.run(arrays)
        return {each.name: array for each, array in zip(module.outputs, results, strict=True)}


def graph_to_bytes(graph: Graph) -> bytes:
    """The graph as a zip archive: ``graph.json`` and one ``.npy`` for each constant."""
    description = {
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "constants": list(graph.constants),
        "types": {name: [list(t.shape), t.dtype] for name, t in graph.types.items()},
        "nodes": [
            {
                "operator": type(node.operator).__name__,
                "attributes": asdict(node.operator),
                "inputs": list(node.inputs),
                "output": node.output,
                "origin": node.origin,
            }
            for node in graph.nodes
        ],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("graph.json"), json.dumps(description, sort_keys=True))
        for number, array in enumerate(graph.constants.values()):
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{number}.npy"), data.getvalue())
    return buffer.getvalue()


def graph_from_bytes(data: bytes) -> Graph:
    """The graph that ``graph_to_bytes`` wrote.

    Raises ModuleError when it cannot be read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            description = json.loads(archive.read("graph.json"))
            constants = {
                name: np.load(io.BytesIO(archive.read(f"{number}.npy")), allow_pickle=False)
                for number, name in enumerate(description["constants"])
            }
        nodes = tuple(_node(entry) for entry in description["nodes"])
        types = {
            name: TensorType(tuple(shape), dtype)
            for name, (shape, dtype) in description["types"].items()
        }
        return Graph(
            tuple(description["inputs"]),
            tuple(description["outputs"]),
            nodes,
            MappingProxyType(constants),
            MappingProxyType(types),
        )
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, GraphError) as error:
        raise ModuleError(f"the module's graph cannot be read: {error}") from None


def _node(entry: dict[str, Any]) -> Node:
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in entry["attributes"].items()
    }
    operator: Operator = OPERATORS[entry["operator"]](**attributes)  # type: ignore[arg-type]
    return Node(operator, tuple(entry["inputs"]), entry["output"], entry["origin"])
