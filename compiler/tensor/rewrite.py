"""Rewriting the elements that stages touch."""

from collections.abc import Callable
from dataclasses import replace

from .ir import Loop, Product, Ref, Scaled, Stage, Total, Value

__all__ = ["map_refs"]


def map_refs(
    stage: Stage,
    change: Callable[[Ref], Ref],
    loops: tuple[Loop, ...] | None = None,
    reduction: frozenset[str] | None = None,
) -> Stage:
    """The stage with ``change`` applied to every element it touches, perhaps in other loops."""
    finish = stage.finish
    if finish:
        finish = replace(finish, bias=change(finish.bias), scale=change(finish.scale))
    return replace(
        stage,
        loops=stage.loops if loops is None else loops,
        reduction=stage.reduction if reduction is None else reduction,
        target=change(stage.target),
        value=_map_value(stage.value, change),
        finish=finish,
    )


def _map_value(value: Value, change: Callable[[Ref], Ref]) -> Value:
    match value:
        case Ref():
            return change(value)
        case Product(left=left, right=right):
            return replace(value, left=change(left), right=change(right))
        case Scaled(ref=ref):
            return replace(value, ref=change(ref))
        case Total(left=left_term, right=right_term):
            return Total(
                replace(left_term, ref=change(left_term.ref)),
                replace(right_term, ref=change(right_term.ref)),
            )
