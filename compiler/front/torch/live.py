"""Modules and programs of torch in memory, where torch is installed: written as a file would be."""

import io
from importlib import import_module
from typing import Any

from ...errors import ModelError

__all__ = ["exported", "is_of_torch", "saved"]


def is_of_torch(model: object) -> bool:
    """True if torch made the model's class, or a class that it derives from."""
    return any(each.__module__.partition(".")[0] == "torch" for each in type(model).__mro__)


def exported(module: Any, inputs: tuple[Any, ...]) -> Any:
    """The program of a module for inputs like these, by ``torch.export.export``.

    Raises ModelError when torch cannot export it.
    """
    torch: Any = import_module("torch")
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"a {type(module).__name__} with inputs; required a torch.nn.Module")
    try:
        with torch.no_grad():
            return torch.export.export(module, inputs)
    except Exception as error:
        # torch raises what the module raises, and many classes of its own.
        said = str(error).strip().split("\n")[0]
        raise ModelError(f"torch cannot export the module: {said}") from error


def saved(program: Any) -> bytes:
    """The content of a program's ``.pt2`` file.  Raises ModelError for anything else of torch."""
    torch: Any = import_module("torch")
    if not isinstance(program, torch.export.ExportedProgram):
        raise ModelError(
            f"a {type(program).__name__}; required the path of a .pt2 file, an ExportedProgram, or "
            "a torch.nn.Module and inputs: compile(module, (input, ...))"
        )
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()
