"""What a damaged ``.pt2`` file may do: become a graph, or be refused by one of our errors."""

from pathlib import Path

from dovetail.compiler.errors import CompilerError
from dovetail.compiler.front.torch.source import TorchModel
from dovetail.compiler.pipeline.limits import Budget, Limits, Watch

from .mutate import mutant

__all__ = ["LIMITS", "run_mutant"]

LIMITS = Limits(steps=20_000, nodes=10_000, elements=1 << 20, work=1 << 28)


def run_mutant(seed: int, path: Path) -> str | None:
    """Import the mutant, written to ``path``; why it was refused, or None.

    Raises what is not one of the compiler's errors.
    """
    path.write_bytes(mutant(seed))
    try:
        model = TorchModel.of(path, Budget(Watch(LIMITS)))
        model.bind(dict.fromkeys(model.symbols(), 2)).to_graph()
    except CompilerError as error:
        return str(error)
    return None
