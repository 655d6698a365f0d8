"""The user's options of quantisation."""

from collections.abc import Set
from dataclasses import field
from enum import StrEnum

from dovetail.isa.frozen import frozen

from ....pipeline.limits import Limits

__all__ = ["Method", "QuantizeOptions"]


class Method(StrEnum):
    """How the range of an activation follows from what calibration saw."""

    MINMAX = "minmax"
    """Smallest to largest value."""
    PERCENTILE = "percentile"
    """Without a share of the values at each end."""
    ENTROPY = "entropy"
    """The range whose quantised histogram diverges least from the exact one."""
    MSE = "mse"
    """The range with the least mean square of what rounding and clipping change."""


@frozen
class QuantizeOptions:
    """percentile: of values that are inside the range, for that method.

    unsigned: activations are uint8, not int8.  per_channel: one weight scale an output channel,
    otherwise one a layer.  weight_bits: 8, or 4 (``four_bits``), of layers with several inputs.
    samples: the most of the data that is used.
    keep: names of nodes that stay float.

    equalize: give channels of activations like ranges, by factors in the weights.  correct_bias,
    adaptive: choose biases, and the rounding of weights, by what the layers compute.
    held: samples that these are chosen by.
    limits: of reading the model, and of evaluating it: the work of each node, all the time, memory.
    """

    method: Method = Method.MINMAX
    percentile: float = 99.99
    unsigned: bool = False
    per_channel: bool = True
    weight_bits: int = 8
    samples: int | None = None
    keep: frozenset[str] = frozenset()
    equalize: bool = False
    correct_bias: bool = False
    adaptive: bool = False
    held: int = 16
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.method not in list(Method):
            raise ValueError(f"method {self.method!r}; required one of {', '.join(Method)}")
        if not isinstance(self.keep, Set):
            raise ValueError(f"keep is {type(self.keep).__name__}; required a set of nodes' names")
        if not 50 < self.percentile <= 100:
            raise ValueError(f"percentile {self.percentile}; required above 50, at most 100")
        if self.weight_bits not in (4, 8):
            raise ValueError(f"weights of {self.weight_bits} bits; required 4 or 8")
        if self.weight_bits < 8 and not self.per_channel:
            raise ValueError("weights of 4 bits have a scale a channel; leave per_channel set")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"{self.samples} samples; required at least 1")
        if self.held < 1:
            raise ValueError(f"{self.held} held samples; required at least 1")
