"""Damaged ``.pt2`` files give their graph's results, or one of our errors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dovetail.compiler import compile
from dovetail.compiler.errors import CompilerError
from dovetail.compiler.front.torch.source import TorchModel
from dovetail.compiler.graph.folding import evaluation_work
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Array, Graph
from dovetail.compiler.graph.passes.integer_layers.recognition import recognise
from dovetail.compiler.options import CompileOptions, CpuOptions
from dovetail.compiler.pipeline.limits import Budget, Limits, Watch
from dovetail.runtime.session import run

from .mutate import FILES, mutant

__all__ = ["LIMITS", "run_mutant"]

LIMITS = Limits(steps=20_000, nodes=10_000, elements=1 << 20, work=1 << 28)
MOST_WORK = 1 << 24
"""Elements that an interpreted run may multiply or move: a second at most."""

FEW_NODES = 12
"""Nodes of a graph: where there are more, one graph in eight is compiled."""

OPTIONS = CompileOptions(cpu=CpuOptions(most_work=1 << 30), limits=LIMITS)


def run_mutant(seed: int, path: Path, files: Sequence[Path] = FILES) -> str | None:
    """Import the mutant, written to ``path``; why it was refused, or None.

    Where it is small, it is compiled too, and its results compared with what its graph means.
    Raises what is not one of the compiler's errors.
    """
    path.write_bytes(mutant(seed, files))
    try:
        model = TorchModel.of(path, Budget(Watch(LIMITS)))
        model = model.bind(dict.fromkeys(model.symbols(), 2))
        imported = model.to_graph()
        graph = imported.graph
        if model.quantizes:
            graph = recognise(graph, imported.kinds).graph
        chosen = len(graph.nodes) <= FEW_NODES or seed % 8 == 0
        if chosen and _work(graph) <= MOST_WORK:
            compare(model, graph, seed)
    except CompilerError as error:
        return str(error)
    return None


def _work(graph: Graph) -> int:
    return sum(
        evaluation_work(
            node.operator,
            [graph.types[name] for name in node.outputs],
            [graph.types[name] for name in node.inputs],
        )
        for node in graph.nodes
    )


def compare(model: TorchModel, graph: Graph, seed: int) -> None:
    """Compile a model; its results are those of its graph, as far as order of sums allows.

    Raises AssertionError where they differ.
    """
    draw = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name in graph.inputs:
        kind = graph.types[name]
        inputs[name] = draw.integers(0, 2, kind.shape).astype(kind.dtype.numpy)
    found = run(compile(model, "cpu", OPTIONS), inputs).outputs
    with np.errstate(all="ignore"):
        wanted = interpret(graph, inputs)
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype
        assert array.shape == wanted[name].shape
        np.testing.assert_allclose(
            array.astype(np.float64), wanted[name].astype(np.float64), rtol=1e-3, atol=1e-3
        )
