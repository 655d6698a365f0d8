"""Modules of torch in memory, where torch is installed."""

from typing import Any

import numpy as np
import pytest

import dovetail.compiler
from dovetail.compiler.dynamo.backend import backend
from dovetail.compiler.errors import ModelError
from dovetail.runtime.session import run

torch: Any = pytest.importorskip("torch", reason="needs torch", exc_type=ImportError)


def model() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


def test_a_module_is_compiled_with_its_inputs() -> None:
    own, x = model(), torch.randn(3, 4)
    module = dovetail.compiler.compile(own, (x,))
    (found,) = run(module, x.numpy()).outputs.values()
    np.testing.assert_allclose(found, own(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ModelError, match=r"compile\(module, \(input, \.\.\.\)\)"):
        dovetail.compiler.compile(own, "cpu")


def test_torch_compile_gives_the_results_of_torch_for_each_shape() -> None:
    own = model()
    compiled = torch.compile(own, backend=backend)
    with torch.no_grad():
        for rows in (3, 5):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(compiled(x), own(x))
