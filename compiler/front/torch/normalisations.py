"""Normalisations."""

from collections.abc import Sequence

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, standardized, widened
from .context import Context, Converter

__all__ = ["NORMALISATIONS"]


def _channels(value: Term, x: Term) -> Term:
    return value.cast(x.dtype).reshape(-1, *(1,) * (x.rank - 2))


def batch_norm(
    context: Context,
    x: Term,
    weight: Term | None,
    bias: Term | None,
    running_mean: Term | None,
    running_var: Term | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Term:
    """Channels standardised by the running statistics; by those of ``x`` in training."""
    given, x = x, widened(x)
    axes = [axis for axis in range(x.rank) if axis != 1]
    if training or running_mean is None or running_var is None:
        y, _, _ = standardized(x, axes, eps)
        y = y if weight is None else y * _channels(weight, x)
        return (y if bias is None else y + _channels(bias, x)).cast(given.dtype)
    factor = 1.0 / (_channels(running_var, x) + eps).sqrt()
    factor = factor if weight is None else _channels(weight, x) * factor
    shift = -(_channels(running_mean, x) * factor)
    shift = shift if bias is None else _channels(bias, x) + shift
    return (x * factor + shift).cast(given.dtype)


def native_batch_norm(
    context: Context,
    x: Term,
    weight: Term | None,
    bias: Term | None,
    running_mean: Term | None = None,
    running_var: Term | None = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
    training: bool = False,
) -> tuple[Term, ...]:
    """As ``batch_norm``; mean and inverse deviation too, in training."""
    y = batch_norm(context, x, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training and running_mean is not None:
        empty = context.term(np.zeros(0), DType.FLOAT32)
        return y, empty, empty
    axes = [axis for axis in range(x.rank) if axis != 1]
    _, mean, inverse = standardized(widened(x), axes, eps)
    return y, mean.reshape(-1), inverse.reshape(-1)


def instance_norm(
    context: Context,
    x: Term,
    weight: Term | None,
    bias: Term | None,
    running_mean: Term | None,
    running_var: Term | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Term:
    """Standardised over the spatial dimensions."""
    if not use_input_stats:
        return batch_norm(context, x, weight, bias, running_mean, running_var, False, momentum, eps)
    y, _, _ = standardized(widened(x), range(2, x.rank), eps)
    y = y if weight is None else y * _channels(weight, y)
    return (y if bias is None else y + _channels(bias, y)).cast(x.dtype)


def native_layer_norm(
    context: Context,
    x: Term,
    normalized_shape: Sequence[int],
    weight: Term | None = None,
    bias: Term | None = None,
    eps: float = 1e-5,
) -> tuple[Term, ...]:
    """Standardised over the last dimensions; mean and inverse deviation too."""
    given, x = x, widened(x)
    axes = range(x.rank - len(normalized_shape), x.rank)
    y, mean, inverse = standardized(x, axes, eps)
    y = y if weight is None else y * weight.cast(y.dtype)
    return (y if bias is None else y + bias.cast(y.dtype)).cast(given.dtype), mean, inverse


def layer_norm(
    context: Context,
    x: Term,
    normalized_shape: Sequence[int],
    weight: Term | None = None,
    bias: Term | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = False,
) -> Term:
    """Standardised over the last dimensions."""
    return native_layer_norm(context, x, normalized_shape, weight, bias, eps)[0]


EPSILON = {DType.FLOAT64: 2.0**-52}
"""torch's default, of float32 for all others."""


def rms_norm(
    context: Context,
    x: Term,
    normalized_shape: Sequence[int],
    weight: Term | None = None,
    eps: float | None = None,
) -> Term:
    """``x / sqrt(mean(x * x) + eps) * weight``."""
    given, x = x, widened(x)
    axes = range(x.rank - len(normalized_shape), x.rank)
    eps = EPSILON.get(x.dtype, 2.0**-23) if eps is None else eps
    y = x * (1.0 / ((x * x).mean(*axes, keep=True) + eps).sqrt())
    return (y if weight is None else y * weight.cast(y.dtype)).cast(given.dtype)


def group_norm(
    context: Context,
    x: Term,
    num_groups: int,
    weight: Term | None = None,
    bias: Term | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = False,
) -> Term:
    """Standardised over groups of channels and the spatial dimensions."""
    return _grouped(x, num_groups, weight, bias, eps)[0]


def native_group_norm(
    context: Context,
    x: Term,
    weight: Term | None,
    bias: Term | None,
    n: int,
    c: int,
    hxw: int,
    group: int,
    eps: float,
) -> tuple[Term, ...]:
    """As ``group_norm``; mean and inverse deviation too."""
    return _grouped(x, group, weight, bias, eps)


def _grouped(
    x: Term, groups: int, weight: Term | None, bias: Term | None, eps: float
) -> tuple[Term, ...]:
    wider = widened(x)
    y, mean, inverse = standardized(wider.reshape(x.shape[0], groups, -1), (2,), eps)
    y = y.reshape(*x.shape)
    y = y if weight is None else y * _channels(weight, y)
    y = y if bias is None else y + _channels(bias, y)
    return y.cast(x.dtype), mean.reshape(-1, groups), inverse.reshape(-1, groups)


NORMALISATIONS: dict[str, Converter] = {
    "aten._native_batch_norm_legit": native_batch_norm,
    "aten._native_batch_norm_legit_no_training": native_batch_norm,
    "aten.batch_norm": batch_norm,
    "aten.group_norm": group_norm,
    "aten.instance_norm": instance_norm,
    "aten.layer_norm": layer_norm,
    "aten.native_batch_norm": native_batch_norm,
    "aten.native_group_norm": native_group_norm,
    "aten.native_layer_norm": native_layer_norm,
    "aten.rms_norm": rms_norm,
}
