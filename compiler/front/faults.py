"""Errors of converters, turned into errors that name the model's node."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import GraphError, ModelError

__all__ = ["faults_of"]

MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)
"""Exceptions of converters for attributes and inputs of an unexpected form."""


@contextmanager
def faults_of(node: object, name: str) -> Iterator[None]:
    """Errors of a converter become ModelErrors.

    node: as messages name it.  name: of its operators in the graph.
    """
    try:
        yield
    except GraphError as error:
        said = str(error).removeprefix(f"node {name!r}: ")
        raise ModelError(f"{node}: {said}") from None
    except MemoryError as error:
        raise ModelError(f"{node} needs more memory than there is: {error}") from None
    except MALFORMED as error:
        raise ModelError(f"{node} is malformed: {type(error).__name__}: {error}") from error
