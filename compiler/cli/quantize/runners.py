"""Models as functions from samples to outputs, and functions that rate those."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ...quantize.accuracy import Metric, Run

__all__ = ["load_metric", "runner"]


def runner(model: Any) -> "Run":
    """The model as machine code of this computer; without LLVM, or where it has no code for an
    operator, node by node in NumPy.
    """
    from dovetail.isa.errors import DovetailError
    from dovetail.runtime import Session

    from ...driver import compile_model

    try:
        session = Session(compile_model(model, "cpu"))
    except (DovetailError, ModuleNotFoundError):
        return _interpreted(model)
    return lambda sample: session.run(dict(sample)).outputs


def _interpreted(model: Any) -> "Run":
    from ...front.onnx.quantize.evaluate import Evaluator
    from ...front.onnx.quantize.model import read_any_model
    from ...front.onnx.quantize.simplify import FoldConstants

    read = FoldConstants({}).run(read_any_model(model))
    evaluator = Evaluator(read)

    def run(sample: "dict") -> "dict":
        values = dict(evaluator.run(sample))
        return {name: values[name] for name in read.outputs}

    return run  # type: ignore[return-value]


def load_metric(name: str) -> "Metric":
    """The function ``package.module:function``; modules of the current folder are found too.

    Raises click.UsageError when there is none.
    """
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Callable | None = getattr(import_module(module), function, None)
    except (ImportError, TypeError, ValueError) as error:
        raise click.UsageError(f"--metric {name}: {error}") from None
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise click.UsageError(f"--metric {name}: no such function; required package.module:name")
    return found
