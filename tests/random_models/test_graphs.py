"""Random models as the importer and the passes leave them, by the interpreter."""

import warnings
from contextlib import suppress

import pytest

from .compare import RefusedError, check
from .draw import draw


@pytest.mark.parametrize("seed", range(40, 66))
def test_graphs_give_what_onnx_runtime_gives(seed: int) -> None:
    sample = draw(seed)
    with warnings.catch_warnings(), suppress(RefusedError):
        warnings.simplefilter("ignore")
        check(sample, "graph")
        check(sample, "graph:tiny")
