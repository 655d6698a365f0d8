"""Kernels in OpenCL C compute what loop programs mean, and networks what CPUs do."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.compiler import compile
from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.ir import Function
from dovetail.runtime.device import Device
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session

from ...loops.strategies import functions
from .programs import compare_product, compare_with_interpreter


@given(function=functions(dtypes=tuple(DType), max_size=9))
@settings(max_examples=25)
def test_random_programs_equal_the_interpreter(opencl: Device, function: Function) -> None:
    compare_with_interpreter(opencl, function)


def test_a_product_in_tiles_of_shared_memory_is_numpys(opencl: Device) -> None:
    compare_product(opencl)


def compare(model: Path, opencl: Device, tmp_path: Path, atol: float) -> None:
    """The module, written and read, gives the CPU target's answers."""
    compile(model, "opencl").save(tmp_path / "model.dvt")
    session = Session(Module.load(tmp_path / "model.dvt"), opencl)
    reference = Session(compile(model, "cpu"))
    rng = np.random.default_rng(5)
    for _ in range(12):
        inputs = {
            each.name: (
                rng.standard_normal(each.shape)
                if each.dtype == "float32"
                else rng.integers(-128, 128, each.shape)
            ).astype(each.dtype)
            for each in session.inputs
        }
        found, expected = session.run(inputs).outputs, reference.run(inputs).outputs
        assert found.keys() == expected.keys()
        for name, want in expected.items():
            assert found[name].dtype == want.dtype
            np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=atol)


def test_digits_gives_the_bytes_of_the_cpu(
    digits_model: Path, opencl: Device, tmp_path: Path
) -> None:
    compare(digits_model, opencl, tmp_path, 0)


@pytest.mark.parametrize("name", ["ic_resnet8_fp32", "ic_resnet8_int8"])
def test_resnet8_gives_the_answers_of_the_cpu(
    name: str, shared_models: Path, opencl: Device, tmp_path: Path
) -> None:
    model = shared_models / "mlperf_tiny" / f"{name}.onnx"
    compare(model, opencl, tmp_path, 1e-5 if name.endswith("fp32") else 0)
