"""The ``cpu`` target: the graph in the module, run by the graph interpreter."""

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
from .graph.interpreter import run
from .graph.ir import Graph, Node
from .graph.ops import OPERATORS, Operator, TensorType

__all__ = ["CpuDevice", "graph_from_bytes", "graph_to_bytes"]


class CpuDevice:
    """Runs modules compiled for ``cpu``."""

    def run(self, module: Module, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Evaluate the module's graph; outputs by name.

        Raises ModuleError when the module's graph cannot be read.
        """
        graph = graph_from_bytes(module.sections["graph"])
        values = run(graph, inputs)
        return {name: np.ascontiguousarray(values[name]) for name in graph.outputs}


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
