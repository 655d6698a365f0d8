"""Losses."""

from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term
from .activations import log_softmax
from .context import Context, Converter
from .indexing import gather

__all__ = ["LOSSES"]


def _reduced(context: Context, losses: Term, reduction: int) -> Term:
    if reduction == 0:
        return losses
    axes = tuple(range(losses.rank))
    return losses.mean(*axes) if reduction == 1 else losses.sum(*axes)


def mse_loss(context: Context, x: Term, target: Term, reduction: int = 1) -> Term:
    """The mean square of the difference."""
    return _reduced(context, (x - target) * (x - target), reduction)


def l1_loss(context: Context, x: Term, target: Term, reduction: int = 1) -> Term:
    """The mean magnitude of the difference."""
    return _reduced(context, (x - target).abs(), reduction)


def nll_loss(
    context: Context,
    x: Term,
    target: Term,
    weight: Term | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Term:
    """``-weight[target] * x[target]``, reduced."""
    if x.rank == 1:
        return nll_loss(
            context, x.unsqueeze(0), target.unsqueeze(0), weight, reduction or 2, ignore_index
        )
    kept = ~target.equal(ignore_index)
    places = kept.where(target, 0, target.dtype)
    chosen = gather(context, x, 1, places.unsqueeze(1))
    chosen = chosen.reshape(*target.shape)
    scale = kept.cast(x.dtype)
    scale = scale if weight is None else scale * weight.take(places, 0)
    losses = -chosen * scale
    axes = tuple(range(losses.rank))
    if reduction != 1:
        return losses.sum(*axes) if reduction else losses
    return losses.sum(*axes) / scale.sum(*axes)


def cross_entropy_loss(
    context: Context,
    x: Term,
    target: Term,
    weight: Term | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Term:
    """The loss of ``log_softmax(x)``, by classes."""
    if label_smoothing or target.dtype.is_float:
        raise UnsupportedOperatorError(f"{context.where}: targets that are probabilities")
    axis = 1 if x.rank > 1 else 0
    return nll_loss(context, log_softmax(context, x, axis), target, weight, reduction, ignore_index)


LOSSES: dict[str, Converter] = {
    "aten.cross_entropy_loss": cross_entropy_loss,
    "aten.l1_loss": l1_loss,
    "aten.mse_loss": mse_loss,
    "aten.nll_loss": nll_loss,
    "aten.nll_loss2d": nll_loss,
    "aten.nll_loss_nd": nll_loss,
}
