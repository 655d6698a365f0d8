"""The rule for each kind of loops."""

from collections.abc import Mapping

from ....define.definition import Kind
from .rule import Rule, as_it_is

__all__ = ["RULES"]

RULES: Mapping[Kind, Rule] = {
    Kind.CONVOLUTION: as_it_is,
    Kind.INDEXING: as_it_is,
}
