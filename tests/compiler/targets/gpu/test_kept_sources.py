"""Whole sources of small models in each language, for which there may be no device here."""

from pathlib import Path

import pytest

from dovetail.compiler.front.table import open_model
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.gpu.compile import compile_graph
from dovetail.compiler.targets.gpu.target import METAL, PLAIN_C, Gpu
from dovetail.compiler.targets.table import find_target
from tests.compiler.schedule.rules.layers import layer
from tests.kept import check_kept

KEPT = Path(__file__).with_name("kept_sources.json")
TARGETS = {
    "opencl": find_target("opencl"),
    "webgpu": find_target("webgpu"),
    "metal": METAL,
    "c": PLAIN_C,
}


@pytest.mark.parametrize("name", ["softmax", "dense", "bytes", "sorted"])
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_are_written_as_they_were(target: str, name: str) -> None:
    gpu, options = TARGETS[target], CompileOptions()
    assert isinstance(gpu, Gpu)
    graph = gpu.prepared(open_model(layer(name)).to_graph().graph, {}, options, Trace(options))
    part = compile_graph(graph, gpu.name, gpu.backend, options, Trace(options))
    entries = [str(entry) for entry in (*part.kernels, *part.steps)]
    check_kept(KEPT, f"{target}, {name}", [*bytes(part.source).decode().splitlines(), *entries])
