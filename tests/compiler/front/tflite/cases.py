"""Random models of one operator each, in families."""

from collections.abc import Callable, Iterator

from .case import Case, restart
from .cases_elementwise import binary, binary_bytes, quantization, unary, unary_bytes
from .cases_layers import detection, indexing, recurrent
from .cases_movement import movement, reductions
from .cases_products import mixed_products, pools, products
from .cases_quantised import functions_of_bytes, functions_of_int16, products_of_integers
from .cases_recurrent import hybrid_layers, integer_layers

__all__ = ["FAMILIES", "Case", "cases"]

FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    each.__name__: each
    for each in (
        *(unary, unary_bytes, binary, binary_bytes, products, mixed_products, pools),
        *(reductions, movement, indexing, quantization, recurrent, detection),
        *(functions_of_bytes, functions_of_int16, products_of_integers),
        *(hybrid_layers, integer_layers),
    )
}


def cases(family: str) -> Iterator[Case]:
    """The cases of a family, always the same."""
    restart()
    yield from FAMILIES[family]()
