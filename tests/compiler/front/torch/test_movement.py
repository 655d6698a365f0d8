"""Views, movement, factories, reductions and indexing of torch, against NumPy."""

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.torch.context import Context
from dovetail.compiler.front.torch.table import CONVERTERS
from dovetail.compiler.graph.emitter import Tensor
from dovetail.compiler.graph.formulas import Term
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.types import TensorType

from .calls import I, X, Y, call, check

F32, I64 = np.float32, np.int64
FLAT, POINT = X.reshape(-1), X[:1, 0, 0].reshape(())
P = np.arange(16, dtype=F32).reshape(1, 4, 2, 2)
SHUFFLED = np.array([[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]], F32)[None, None]
MASK = X > 0
ONE, NIL = np.array(2.5, F32), np.array(0)
ROWS = np.array([1, 0, 1])
PLACES = np.array([[2, 0], [1, 1]])

VIEWS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("view", (X, (4, 6)), {}, X.reshape(4, 6)),
    ("view", (X,), {"shape": (3, 8)}, X.reshape(3, 8)),
    ("view_as", (X, np.zeros((6, 4), F32)), {}, X.reshape(6, 4)),
    ("view.dtype", (X, DType.INT32), {}, X.view(np.int32)),
    ("unflatten", (X, -1, (2, -1)), {}, X.reshape(2, 3, 2, 2)),
    ("unflatten", (X, 2, (-1, 1)), {}, X.reshape(2, 3, 4, 1)),
    ("flatten", (X,), {}, FLAT),
    ("flatten", (X, 1), {}, X.reshape(2, 12)),
    ("flatten", (X, 0, 1), {}, X.reshape(6, 4)),
    ("flatten", (np.array(3, F32),), {}, np.array([3], F32)),
    ("permute", (X, (2, 0, -2)), {}, X.transpose(2, 0, 1)),
    ("transpose", (X, 0, -1), {}, X.swapaxes(0, 2)),
    ("swapaxes", (X, 1, 2), {}, X.swapaxes(1, 2)),
    ("mT", (X,), {}, X.swapaxes(1, 2)),
    ("T", (X,), {}, X.T),
    ("movedim", (X, 0, -1), {}, np.moveaxis(X, 0, -1)),
    ("movedim", (X, (2, 0), (0, 1)), {}, np.moveaxis(X, (2, 0), (0, 1))),
    ("expand", (X[:, :1], (5, -1, 3, 4)), {}, np.broadcast_to(X[:, :1], (5, 2, 3, 4))),
    ("expand_as", (X[:, :1], X), {}, np.broadcast_to(X[:, :1], X.shape)),
    ("squeeze", (X[:1, :, :1],), {}, X[0, :, 0]),
    ("squeeze", (X[:1, :, :1], 0), {}, X[0, :, :1]),
    ("squeeze", (X[:1, :, :1], (1, -1)), {}, X[:1, :, 0]),
    ("unsqueeze", (X, -1), {}, X[..., None]),
    ("unsqueeze", (X, 1), {}, X[:, None]),
    ("select", (X, 1, -1), {}, X[:, -1]),
    ("select", (X, -1, 1), {}, X[..., 1]),
    ("slice", (X, 2, 1, 100, 2), {}, X[..., 1::2]),
    ("slice", (X, -1, -3, -1), {}, X[..., -3:-1]),
    ("slice", (X, 1, 2, 1), {}, X[:, 2:1]),
    ("slice", (X,), {"start": 1}, X[1:]),
    ("narrow", (X, 2, -3, 2), {}, X[..., 1:3]),
    ("narrow", (X, 1, 1, 2), {}, X[:, 1:3]),
    ("split", (X, 3, 2), {}, (X[..., :3], X[..., 3:])),
    ("split", (X, 2), {"dim": -1}, (X[..., :2], X[..., 2:])),
    ("split_with_sizes", (X,), {"split_sizes": (1, 3), "dim": 2}, (X[..., :1], X[..., 1:])),
    ("chunk", (X, 3, 2), {}, (X[..., :2], X[..., 2:])),
    ("chunk", (X, 2), {}, (X[:1], X[1:])),
    ("tensor_split", (X, 3, 2), {}, (X[..., :2], X[..., 2:3], X[..., 3:])),
    ("tensor_split", (X,), {"indices": (1, 3), "dim": 2}, (X[..., :1], X[..., 1:3], X[..., 3:])),
    ("unbind", (X, 1), {}, (X[:, 0], X[:, 1], X[:, 2])),
    ("diagonal", (X, 1, 1, 2), {}, np.diagonal(X, 1, 1, 2)),
    ("diagonal", (X, -1, 2, 0), {}, np.diagonal(X, -1, 2, 0)),
    ("diagonal", (X,), {}, np.diagonal(X)),
    ("diagonal", (X, 9, 1, 2), {}, np.diagonal(X, 9, 1, 2)),
    (
        "as_strided", (X, (2, 3), (5, 2), 3), {},
        as_strided(FLAT[3:], (2, 3), (20, 8)),
    ),
    ("as_strided", (X, (4,), (3,)), {}, FLAT[:12:3]),
    ("unfold", (X, 2, 3, 1), {}, sliding_window_view(X, 3, 2)),
    ("unfold", (POINT, 0, 1, 1), {}, POINT.reshape(1)),
    ("transpose", (POINT, 0, 0), {}, POINT),
    ("mean", (X[:0], (0,)), {}, np.full((3, 4), np.nan, np.float32)),
    ("unfold", (X, 1, 2, 1), {}, sliding_window_view(X, 2, 1)),
    ("dropout", (X, 0.5, False), {}, X),
    ("dropout", (X, 0.0, True), {}, X),
]  # fmt: skip

MOVEMENT: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("cat", ((X, np.zeros(0, F32), Y), -1), {}, np.concatenate([X, Y], -1)),
    ("cat", ((I, X), 1), {"declared": F32}, np.concatenate([I, X], 1).astype(F32)),
    ("stack", ((X, Y), -1), {}, np.stack([X, Y], -1)),
    ("stack", ((X, Y),), {}, np.stack([X, Y])),
    ("repeat", (X, (2, 1, 1, 3)), {}, np.tile(X, (2, 1, 1, 3))),
    ("tile", (X,), {"dims": (2,)}, np.tile(X, 2)),
    ("flip", (X, (0, -1)), {}, X[::-1, :, ::-1]),
    ("roll", (X, (1, -2), (0, -1)), {}, np.roll(X, (1, -2), (0, 2))),
    ("roll", (X, (2, 1), (1, 2)), {}, np.roll(X, (2, 1), (1, 2))),
    ("roll", (X, (5,)), {}, np.roll(X, 5)),
    ("roll", (X, (4,), (2,)), {}, X),
    ("constant_pad_nd", (X, (1, 2), 7), {}, np.pad(X, ((0, 0), (0, 0), (1, 2)), constant_values=7)),
    ("constant_pad_nd", (X, (-1, 2, 1, -2)), {}, np.pad(X[:, :1, 1:], ((0, 0), (1, 0), (0, 2)))),
    ("pad", (X, (1, 2), "reflect"), {}, np.pad(X, ((0, 0), (0, 0), (1, 2)), "reflect")),
    ("pad", (X, (1, 2), "circular"), {}, np.pad(X, ((0, 0), (0, 0), (1, 2)), "wrap")),
    ("pad", (X, (-1, 2), "circular"), {}, np.pad(X[..., 1:], ((0, 0), (0, 0), (0, 2)), "wrap")),
    ("pad", (X, (0, 1), "replicate"), {}, np.pad(X, ((0, 0), (0, 0), (0, 1)), "edge")),
    ("pad", (X, (2, 1)), {"value": 1.5}, np.pad(X, ((0, 0), (0, 0), (2, 1)), constant_values=1.5)),
    ("reflection_pad1d", (X, (2, 1)), {}, np.pad(X, ((0, 0), (0, 0), (2, 1)), "reflect")),
    ("replication_pad1d", (X, (2, 1)), {}, np.pad(X, ((0, 0), (0, 0), (2, 1)), "edge")),
    (
        "channel_shuffle", (P, 2), {}, P.reshape(1, 2, 2, 2, 2).swapaxes(1, 2).reshape(P.shape),
    ),
    ("pixel_shuffle", (P, 2), {}, SHUFFLED),
    ("pixel_unshuffle", (SHUFFLED, 2), {}, P),
    (
        "meshgrid", ((ROWS, X[0, 0]),), {}, tuple(np.meshgrid(ROWS, X[0, 0], indexing="ij")),
    ),
    (
        "meshgrid", ((ROWS, X[0, 0]), "xy"), {}, tuple(np.meshgrid(ROWS, X[0, 0], indexing="xy")),
    ),
]  # fmt: skip

MADE: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("full", ((2, 3), 4), {"declared": I64}, np.full((2, 3), 4)),
    ("zeros", ((2,),), {}, np.zeros(2, F32)),
    ("ones", ((2,),), {}, np.ones(2, F32)),
    ("full_like", (X, 3), {}, np.full_like(X, 3)),
    ("zeros_like", (X,), {}, np.zeros_like(X)),
    ("ones_like", (I,), {}, np.ones_like(I)),
    ("new_full", (X, (2,), 5), {}, np.full(2, 5, F32)),
    ("new_ones", (X, (2,)), {}, np.ones(2, F32)),
    ("new_zeros", (X, (2,)), {}, np.zeros(2, F32)),
    ("fill", (X, 2), {}, np.full_like(X, 2)),
    ("zero", (I,), {}, np.zeros_like(I)),
    ("scalar_tensor", (3,), {}, np.array(3, F32)),
    ("arange", (7, 1, 2), {"declared": I64}, np.arange(1, 7, 2)),
    ("arange", (4,), {"declared": I64}, np.arange(4)),
    ("arange", (), {"start": 3, "end": 0, "step": -1}, np.arange(3, 0, -1, F32)),
    ("arange", (2, 3), {"declared": I64}, np.zeros(0, I64)),
    ("linspace", (1, 3, 5), {}, np.linspace(1, 3, 5, dtype=F32)),
    ("eye", (2, 3), {}, np.eye(2, 3, dtype=F32)),
    ("eye", (3,), {}, np.eye(3, dtype=F32)),
    ("tril", (X, 1), {}, np.tril(X, 1)),
    ("tril", (X,), {}, np.tril(X)),
    ("triu", (X, -1), {}, np.triu(X, -1)),
    ("triu", (X,), {}, np.triu(X)),
    ("tril_indices", (3, 4, 1), {"declared": I64}, np.stack(np.tril_indices(3, 1, 4))),
    ("triu_indices", (3, 4, 1), {"declared": I64}, np.stack(np.triu_indices(3, 1, 4))),
    ("one_hot", (ROWS,), {}, np.eye(2, dtype=I64)[ROWS]),
    ("one_hot", (ROWS, 4), {}, np.eye(4, dtype=I64)[ROWS]),
    ("to", (X,), {"declared": np.int32}, X.astype(np.int32)),
    ("copy", (X, I[0]), {}, np.broadcast_to(I[0], X.shape).astype(F32)),
    ("native_dropout", (X, 0.5), {"train": False}, (X, np.ones(X.shape, bool))),
]

REDUCED: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("sum", (X,), {}, X.sum(dtype=F32)),
    ("sum", (X, (0, -1), True), {}, X.sum((0, 2), keepdims=True)),
    ("sum", (MASK, 1), {"declared": I64}, MASK.sum(1)),
    ("prod", (X, -1), {}, X.prod(-1)),
    ("mean", (X, (1,)), {}, X.mean(1)),
    ("mean", (I,), {"declared": F32}, np.asarray(I.mean(), F32)),
    ("amax", (X, (0, 1)), {}, X.max((0, 1))),
    ("amin", (X, 2, True), {}, X.min(2, keepdims=True)),
    ("max", (X,), {}, X.max()),
    ("max.dim", (X, 1), {}, (X.max(1), X.argmax(1))),
    ("min.dim", (X, -1, True), {}, (X.min(-1, keepdims=True), X.argmin(-1)[..., None])),
    ("argmax", (X,), {"declared": I64}, X.argmax()),
    ("argmax", (X, 1, True), {"declared": I64}, X.argmax(1)[:, None]),
    ("argmin", (X, -2), {"declared": I64}, X.argmin(1)),
    ("argmin", (X, None, True), {"declared": I64}, X.argmin().reshape(1, 1, 1)),
    ("any", (I == 3, 1), {}, (I == 3).any(1)),
    ("any", (I == 3, 1, True), {}, (I == 3).any(1, keepdims=True)),
    ("any", (I,), {"declared": bool}, (I != 0).any()),
    ("all", (I < 7, 2), {}, (I < 7).all(2)),
    ("all", (I < 7, 2, True), {}, (I < 7).all(2, keepdims=True)),
    ("var", (X, (1,)), {}, X.var(1, ddof=1)),
    ("var", (X, 2, False, True), {}, X.var(2, keepdims=True)),
    ("var", (X, (0, 2)), {"correction": 3}, X.var((0, 2), ddof=3)),
    ("std", (X,), {}, X.std(ddof=1, dtype=F32)),
    ("std", (X, 1), {"unbiased": False}, X.std(1)),
    (
        *("var_mean", (X, 2), {"keepdim": True}),
        (X.var(2, ddof=1, keepdims=True), X.mean(2)[..., None]),
    ),
    ("logsumexp", (X, 1), {}, np.log(np.exp(X).sum(1))),
    ("logsumexp", (X * 100, (0, 2), True), {}, (X * 100).max((0, 2), keepdims=True)),
    ("norm", (X, 2, 1), {}, np.sqrt((X * X).sum(1))),
    ("norm", (X, 1, (0, 1), True), {}, np.abs(X).sum((0, 1), keepdims=True)),
    ("norm", (X, 3, -1), {}, (np.abs(X) ** 3).sum(-1) ** F32(1 / 3)),
    ("norm", (X, None), {}, np.sqrt((X * X).sum(dtype=F32))),
    ("norm", (X, float("inf"), 1), {}, np.abs(X).max(1)),
    ("norm", (X, float("-inf"), 1), {}, np.abs(X).min(1)),
    ("norm", (np.maximum(X, 0), 0, 2), {}, MASK.sum(2).astype(F32)),
    ("linalg_vector_norm", (X, 2, 0, True), {}, np.sqrt((X * X).sum(0, keepdims=True))),
    ("cumsum", (X, -1), {}, X.cumsum(-1)),
    ("cumsum", (MASK, 1), {"declared": I64}, MASK.cumsum(1)),
    ("cumprod", (X, 1), {}, X.cumprod(1)),
    ("sort", (X, 1), {}, (np.sort(X, 1), X.argsort(1))),
    ("sort", (X, -1, True), {}, (-np.sort(-X, -1), (-X).argsort(-1))),
    ("argsort", (X, 0, True), {"declared": I64}, (-X).argsort(0)),
    ("topk", (X, 2), {}, (-np.sort(-X, -1)[..., :2], (-X).argsort(-1)[..., :2])),
    ("topk", (X, 1, 1, False), {}, (X.min(1, keepdims=True), X.argmin(1)[:, None])),
    ("topk", (np.array(4, F32), 1), {}, (np.array(4, F32), np.array(0))),
    ("sort", (np.array(4, F32),), {}, (np.array(4, F32), np.array(0))),
    ("cumsum", (np.array(4, F32), 0), {}, np.array(4, F32)),
    ("logsumexp", (np.array(4, F32), ()), {}, np.array(4, F32)),
]


def scattered(axis: int, index: np.ndarray, src: Any, how: Any = None) -> np.ndarray:
    """X with elements written one after the other."""
    found = X.copy()
    for place in np.ndindex(*index.shape):
        at = (*place[:axis], index[place], *place[axis + 1 :])
        value = src[place] if isinstance(src, np.ndarray) else src
        found[at] = how(found[at], value) if how else value
    return found


AT = np.array([[[1, 0], [2, 2]], [[0, 0], [1, 2]]])
GIVEN = np.arange(8, dtype=F32).reshape(AT.shape) - 3
DIAGONAL = X.copy()
DIAGONAL[:, [0, 1, 2], [1, 2, 3]] = GIVEN[0, 0, 0]
PUT = X.copy()
PUT[:, [1, 0], [2, 3]] = Y[:, 0, :2]
ADDED = X.copy()
np.add.at(ADDED, (ROWS,), np.broadcast_to(Y[0], (3, 3, 4)))
MASKED = X.copy()
MASKED[MASK] = np.arange(MASK.sum(), dtype=F32)
COPIED, SUMMED, FILLED = X.copy(), X.copy(), X.copy()
COPIED[:, [2, 0]], FILLED[:, [2, 0]] = Y[:, :2], 9
SUMMED[:, [2, 0]] += Y[:, :2] * 3
SLICED, STEPPED, SELECTED = X.copy(), X.copy(), X.copy()
SLICED[..., 1:3], STEPPED[..., 1::2], SELECTED[:, -1] = Y[..., :2], Y[..., :2], Y[:, 0]

INDEXED: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("index_select", (X, -1, PLACES.reshape(-1)), {}, X[..., PLACES.reshape(-1)]),
    ("gather", (X, 1, AT), {}, np.take_along_axis(X[..., :2], AT, 1)),
    ("index", (X, (PLACES[:, 0] % 2, None, PLACES)), {}, X[PLACES[:, 0] % 2, :, PLACES]),
    ("index", (X, (None, PLACES)), {}, X[:, PLACES]),
    ("index", (X, (None, ROWS, ROWS + 1)), {}, X[:, ROWS, ROWS + 1]),
    ("index", (X, (MASK,)), {}, X[MASK]),
    ("index_put", (X, (None, np.array([1, 0]), np.array([2, 3])), Y[:, 0, :2]), {}, PUT),
    ("index_put", (X, (ROWS,), Y[0], True), {}, ADDED),
    ("index_put", (X, (MASK,), np.array(5, F32)), {}, np.where(MASK, F32(5), X)),
    ("index_put", (X, (MASK,), np.arange(MASK.sum(), dtype=F32)), {}, MASKED),
    ("masked_fill", (X, MASK, 3), {}, np.where(MASK, F32(3), X)),
    ("masked_scatter", (X, MASK, np.arange(24, dtype=F32)), {}, MASKED),
    ("take", (X, PLACES * 5), {}, X.reshape(-1)[PLACES * 5]),
    ("nonzero", (MASK,), {"declared": I64}, np.argwhere(MASK)),
    ("index_select", (ONE, 0, np.array([0])), {}, ONE),
    ("gather", (ONE, 0, NIL), {}, ONE),
    ("gather", (X, 1, AT[:0]), {}, X[:0, :2, :2]),
    ("scatter", (X, 1, AT[:0], GIVEN), {}, X),
    ("scatter", (ONE, 0, NIL, np.array(4, F32)), {}, np.array(4, F32)),
    ("scatter_reduce", (ONE, 0, NIL, np.array(4, F32), "prod", False), {}, np.array(4, F32)),
    ("index_add", (ONE, 0, NIL, np.array(4, F32)), {}, ONE + 4),
    ("index_add", (X, 1, np.zeros(0, I64), Y[:, :0]), {}, X),
    ("scatter", (X, 1, AT, GIVEN), {}, scattered(1, AT, GIVEN)),
    ("scatter", (X, 1, AT), {"value": 8}, scattered(1, AT, 8)),
    ("scatter", (X, 1, AT, GIVEN), {"reduce": "multiply"}, scattered(1, AT, GIVEN, np.multiply)),
    ("scatter_add", (X, -2, AT, GIVEN), {}, scattered(1, AT, GIVEN, np.add)),
    ("scatter_reduce", (X, 1, AT, GIVEN, "amax"), {}, scattered(1, AT, GIVEN, np.maximum)),
    ("scatter_reduce", (X, 1, AT, GIVEN, "amin"), {}, scattered(1, AT, GIVEN, np.minimum)),
    ("index_add", (X, 1, np.array([2, 0]), Y[:, :2], 3), {}, SUMMED),
    ("index_copy", (X, 1, np.array([2, 0]), Y[:, :2]), {}, COPIED),
    ("index_fill", (X, 1, np.array([2, 0]), 9), {}, FILLED),
    ("select_scatter", (X, Y[:, 0], 1, -1), {}, SELECTED),
    ("slice_scatter", (X, Y[..., :2], 2, 1, 3), {}, SLICED),
    ("slice_scatter", (X, Y[..., :2], -1, 1, None, 2), {}, STEPPED),
    ("diagonal_scatter", (X, np.full((2, 3), -3, F32), 1, 1, 2), {}, DIAGONAL),
]
ALL = [*VIEWS, *MOVEMENT, *MADE, *REDUCED, *INDEXED]
IDS = [f"{each[0]}-{n}" for n, each in enumerate(ALL)]


@pytest.mark.parametrize(("name", "given", "named", "expected"), ALL, ids=IDS)
def test_an_operator_gives_numpys_elements(
    name: str, given: tuple[Any, ...], named: dict[str, Any], expected: Any
) -> None:
    check(f"aten.{name}", given, named, expected)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dtype", [F32, I64])
def test_elements_written_to_one_place_are_combined_with_it_or_not(
    reduce: str, own: bool, dtype: Any
) -> None:
    combine = {"sum": sum, "prod": np.prod, "amax": max, "amin": min}
    x, src = (each.astype(dtype) for each in (X * 5, GIVEN))
    expected = x.copy()
    for i, j, k in np.ndindex(2, 3, 2):
        there = [src[i, n, k] for n in range(2) if AT[i, n, k] == j]
        there += [x[i, j, k]] if own and there else []
        if there and reduce == "mean":
            total = sum(there)
            expected[i, j, k] = total / len(there) if dtype is F32 else total // len(there)
        elif there:
            expected[i, j, k] = combine[reduce](there)
    check("aten.scatter_reduce", (x, 1, AT, src, reduce, own), {}, expected)


def test_what_draws_numbers_is_refused() -> None:
    for name in ("dropout", "native_dropout"):
        with pytest.raises(UnsupportedOperatorError, match=r"in training; use model\.eval"):
            call(f"aten.{name}", X, 0.5, True)
    with pytest.raises(UnsupportedOperatorError, match="padding 'mirror'"):
        call("aten.pad", X, (1, 1), "mirror")
    with pytest.raises(IndexError, match="dimension 3 of 3"):
        call("aten.squeeze", X, 3)
    with pytest.raises(IndexError, match="dimension -4 of 3"):
        call("aten.sum", X, -4)


def test_a_tensor_that_is_too_large_is_said_with_what_makes_it() -> None:
    with pytest.raises(ModelError, match=r"^constants of the model: a tensor of .*at most 64 GiB"):
        call("aten.expand", X[:1, :1], (1 << 17, 1 << 16, 4))


VALUES = np.arange(1, 30, dtype=F32)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    ("mask", "values"),
    [
        (MASK, VALUES[0]),
        (MASK, VALUES[: MASK.sum()]),
        (MASK[:, :, 0], VALUES[:4]),
        (MASK[:, :, 0], VALUES[:4][None]),
        (MASK[:, :, 0], VALUES[: 4 * MASK[:, :, 0].sum()].reshape(-1, 4)),
    ],
    ids=["number", "elements", "row", "one row", "rows"],
)
def test_values_go_where_a_mask_holds_that_is_known_only_when_the_model_runs(
    mask: Any, values: Any, accumulate: bool
) -> None:
    context = Context(GraphBuilder())
    given = Term(context, Tensor("mask", TensorType(mask.shape, DType.BOOL)))
    context.builder.input("mask", given.tensor.type)
    x, own = (context.term(each, DType.FLOAT32) for each in (X, values))
    written = CONVERTERS["aten.index_put"](context, x, (given,), own, accumulate)
    graph = context.builder.build((written.tensor.name,))
    expected = X.copy()
    expected[mask] = expected[mask] + values if accumulate else values
    found = run(graph, {"mask": mask})[graph.outputs[0]]
    np.testing.assert_array_equal(found, expected)
