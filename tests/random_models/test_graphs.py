"""Random models as the importer and the passes leave them, by the interpreter."""

import warnings

import pytest

from .compare import RefusedError, check
from .draw import draw


@pytest.mark.parametrize("seed", range(40, 66))
def test_graphs_give_what_onnx_runtime_gives(seed: int) -> None:
    sample = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in ("graph", "graph:tiny"):
            try:
                check(sample, target)
            except RefusedError as refused:
                assert target == "graph:tiny" or "depends on" in str(refused)
