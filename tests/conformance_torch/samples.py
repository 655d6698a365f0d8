"""Samples of torch's OpInfo as ``.pt2`` files with torch's results: run where torch is installed.

``python samples.py FOLDER``.  Source: ``torch.testing._internal.common_methods_invocations``, the
database by which PyTorch tests its operators.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

DTYPES = {"float32": torch.float32, "int64": torch.int64}

FUNCTIONAL = {
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "elu", "embedding", "embedding_bag", "fold", "gelu",
    "grid_sample", "group_norm", "hardtanh", "interpolate", "layer_norm", "leaky_relu", "linear",
    "max_pool2d", "max_pool3d", "pad", "pdist", "relu", "scaled_dot_product_attention", "silu",
    "upsample_bilinear", "upsample_nearest",
}  # fmt: skip
"""Functions of ``torch.nn.functional`` that become core operators of other names."""

OTHERS = {"__getitem__", "cdist", "fft.irfft", "fft.rfft", "log_softmax", "native_batch_norm",
          "softmax", "split", "to", "view_copy"}  # fmt: skip
"""Functions elsewhere that do."""

RANDOM = {"empty", "empty_like", "empty_permuted", "empty_strided", "native_dropout_backward",
          "new_empty", "new_empty_strided", "nn.functional.dropout", "rand", "randn", "randperm",
          "rand_like", "randn_like"}  # fmt: skip
"""Operators that give other numbers each time, or any."""


class Call(torch.nn.Module):
    """A call of an operator; its tensors are the inputs, all else is part of the program."""

    def __init__(self, operator: Any, given: Any) -> None:
        super().__init__()
        self.operator = operator
        leaves, self.spec = pytree.tree_flatten(given)
        self.tensors = [n for n, each in enumerate(leaves) if isinstance(each, torch.Tensor)]
        self.inputs = tuple(leaves[n].detach() for n in self.tensors)
        self.rest = [None if n in self.tensors else each for n, each in enumerate(leaves)]

    def forward(self, *inputs: torch.Tensor) -> Any:
        leaves = list(self.rest)
        for place, tensor in zip(self.tensors, inputs, strict=True):
            leaves[place] = tensor
        first, rest, named = pytree.tree_unflatten(leaves, self.spec)
        return self.operator(first, *rest, **named)


def core_operators() -> set[str]:
    """Names of the core ATen operators, without overloads."""
    found = set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        overloads = packet.overloads() if hasattr(packet, "overloads") else ()
        if any(torch.Tag.core in getattr(packet, each).tags for each in overloads):
            found.add(name)
    return found


def operators() -> Iterator[Any]:
    """Entries of the database that are core operators, or become some."""
    core = core_operators()
    for each in op_db:
        last = each.name.removeprefix("nn.functional.")
        wanted = each.aten_name in core or each.name in core or each.name in OTHERS
        if "backward" in each.name:
            continue
        if (wanted or (last != each.name and last in FUNCTIONAL)) and each.name not in RANDOM:
            yield each


def write(folder: Path, name: str, sample: Any, operator: Any) -> str | None:
    """One sample; None when it was written, otherwise why torch cannot export it."""
    call = Call(operator, (sample.input, sample.args, sample.kwargs)).eval()
    try:
        with torch.no_grad():
            program = torch.export.export(call, call.inputs)
            torch.export.save(program, folder / f"{name}.pt2")
            results = pytree.tree_flatten(call(*call.inputs))[0]
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0][:150]
    tensors = [each for each in results if isinstance(each, torch.Tensor)]
    named = {f"input{n:02}": each.numpy() for n, each in enumerate(call.inputs)}
    named |= {f"output{n:02}": each.resolve_conj().numpy() for n, each in enumerate(tensors)}
    np.savez(folder / f"{name}.npz", **named)
    return None


def main() -> None:
    """Write the samples; say what torch itself cannot export."""
    parser = argparse.ArgumentParser(prog="samples")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=8, help="samples of an operator and dtype")
    parser.add_argument("--match", default="")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    written, refused = 0, 0
    for each in operators():
        if arguments.match not in each.name:
            continue
        for dtype, kind in DTYPES.items():
            if kind not in each.dtypes:
                continue
            torch.manual_seed(0)
            for number, sample in enumerate(each.sample_inputs("cpu", kind)):
                if number == arguments.most:
                    break
                variant = f"-{each.variant_test_name}" if each.variant_test_name else ""
                name = f"{each.name}{variant}.{dtype}.{number}"
                problem = write(arguments.folder, name, sample, each.op)
                written, refused = written + (problem is None), refused + (problem is not None)
                if problem:
                    print(f"torch does not export {name}: {problem}", flush=True)
    print(f"{written} samples written; {refused} that torch does not export", flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
