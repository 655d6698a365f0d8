"""Elementwise functions, activations, layers and losses of torch, against formulas in NumPy."""

from math import erf, erfc
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError

from .calls import I, X, Y, call, check

F32, I64 = np.float32, np.int64
INF, NAN = float("inf"), float("nan")
POSITIVE = np.abs(X) + F32(0.1)
INSIDE = np.tanh(X)
ODD = np.array([-INF, -1.0, -0.0, 0.0, 2.5, INF, NAN], F32)
J = np.where(I == 0, 3, I)[::-1]
SIGMOID = 1 / (1 + np.exp(-X))
ELU = np.where(X > 0, X, np.expm1(X))
LOG_SOFTMAX = X - np.log(np.exp(X).sum(1, keepdims=True))
PHI = np.vectorize(lambda x: 0.5 * (1 + erf(x / 2**0.5)))(X)
TANH_PHI = 0.5 * (1 + np.tanh((2 / np.pi) ** 0.5 * (X + 0.044715 * X**3)))
SOFTPLUS = np.log1p(np.exp(X))
W = Y[0, :, 0]
PAIRED = np.array([-1.0, -0.0, 0.0, 1.0, INF, -INF], F32)
A, B = (each.reshape(-1) for each in np.meshgrid(PAIRED, PAIRED))

ELEMENTWISE: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("add", (X, Y), {"alpha": 3}, X + 3 * Y),
    ("add", (I, 2.5), {"declared": F32}, (I + 2.5).astype(F32)),
    ("add", (I > 0, I > 3), {}, (I > 0) | (I > 3)),
    ("mul", (I > 0, I < 3), {}, (I > 0) & (I < 3)),
    ("mul", (I, X), {"declared": F32}, (I * X).astype(F32)),
    ("sub", (X, 2), {"alpha": -1}, X + 2),
    ("rsub", (X, Y), {"alpha": 2}, Y - 2 * X),
    ("div", (X, Y), {}, X / Y),
    ("div", (I, J), {"declared": F32}, (I / J).astype(F32)),
    ("div", (I, J, "floor"), {}, I // J),
    ("div", (I, J, "trunc"), {}, np.trunc(I / J).astype(I64)),
    ("div", (X, Y, "trunc"), {}, np.trunc(X / Y)),
    ("div", (X, Y, "floor"), {}, np.floor(X / Y)),
    ("floor_divide", (I, J), {}, I // J),
    ("remainder", (I, J), {}, I % J),
    ("fmod", (I, J), {}, np.fmod(I, J)),
    ("fmod", (X, Y), {}, np.fmod(X, Y)),
    ("pow", (X, 2), {}, X * X),
    ("pow", (X, 3), {}, X**3),
    ("pow", (POSITIVE, 0.5), {}, np.sqrt(POSITIVE)),
    ("pow", (POSITIVE, -0.5), {}, 1 / np.sqrt(POSITIVE)),
    ("pow", (X, -1), {}, 1 / X),
    ("pow", (POSITIVE, Y), {}, POSITIVE**Y),
    ("pow", (3, X), {}, F32(3) ** X),
    ("maximum", (X, Y), {}, np.maximum(X, Y)),
    ("min.other", (X, Y), {}, np.minimum(X, Y)),
    ("ge", (I, 3), {}, I >= 3),
    ("gt", (I, 3), {}, I > 3),
    ("le", (I, 3), {}, I <= 3),
    ("lt", (I, 3), {}, I < 3),
    ("eq", (I, 3), {}, I == 3),
    ("ne", (I, 3), {}, I != 3),
    ("__and__", (I, J), {}, I & J),
    ("__or__", (I, J), {}, I | J),
    ("__xor__", (I, J), {}, I ^ J),
    ("__lshift__", (I, 2), {}, I << 2),
    ("__rshift__", (I, 2), {}, I >> 2),
    ("bitwise_not", (I,), {}, ~I),
    ("logical_and", (I, J > 2), {}, (I != 0) & (J > 2)),
    ("logical_or", (I, J > 2), {}, (I != 0) | (J > 2)),
    ("logical_xor", (I, J), {}, (I != 0) ^ (J != 0)),
    ("logical_not", (I,), {}, I == 0),
    ("abs", (I,), {}, np.abs(I)),
    ("abs", (I > 0,), {}, I > 0),
    ("neg", (X,), {}, -X),
    ("sign", (I,), {}, np.sign(I)),
    ("sign", (I > 0,), {}, I > 0),
    ("sign", (np.arange(3, dtype=np.uint8),), {}, np.array([0, 1, 1], np.uint8)),
    ("signbit", (ODD[:-1],), {}, np.signbit(ODD[:-1])),
    ("signbit", (I,), {}, I < 0),
    ("reciprocal", (X,), {}, 1 / X),
    ("rsqrt", (POSITIVE,), {}, 1 / np.sqrt(POSITIVE)),
    ("square", (X,), {}, X * X),
    ("exp2", (X,), {}, np.exp2(X)),
    ("expm1", (X,), {}, np.expm1(X)),
    ("log1p", (POSITIVE,), {}, np.log1p(POSITIVE)),
    ("log1p", (np.array([7e3, 65504], np.float16),), {}, np.array([8.853, 11.09], np.float16)),
    ("log1p", (np.array([5e36, 3e38], F32),), {}, np.log(np.array([5e36, 3e38])).astype(F32)),
    ("log1p", (np.array([-1.0, 0.0, INF], F32),), {}, np.array([-INF, 0, INF], F32)),
    ("log2", (POSITIVE,), {}, np.log2(POSITIVE)),
    ("log10", (POSITIVE,), {}, np.log10(POSITIVE)),
    ("atan2", (X, Y), {}, np.arctan2(X, Y)),
    ("atan2", (A, B), {}, np.arctan2(A, B)),
    ("round", (X,), {}, np.round(X)),
    ("round", (X,), {"decimals": 2}, np.round(X, 2)),
    ("round", (X * 100,), {"decimals": -2}, np.round(X * 100, -2)),
    ("ceil", (X,), {}, np.ceil(X)),
    ("floor", (X,), {}, np.floor(X)),
    ("trunc", (X,), {}, np.trunc(X)),
    ("trunc", (I,), {}, I),
    ("isnan", (ODD,), {}, np.isnan(ODD)),
    ("isnan", (I,), {}, np.zeros(I.shape, bool)),
    ("isinf", (ODD,), {}, np.isinf(ODD)),
    ("isfinite", (ODD,), {}, np.isfinite(ODD)),
    ("isfinite", (I,), {}, np.ones(I.shape, bool)),
    ("clamp", (X, -1, 0.5), {}, X.clip(-1, 0.5)),
    ("clamp_min", (I, 2), {}, I.clip(2)),
    ("clamp_max", (I,), {"high": 2}, I.clip(None, 2)),
    ("where", (I, X, 2), {"declared": F32}, np.where(I != 0, X, F32(2))),
    ("erf", (X,), {}, np.vectorize(erf)(X)),
    ("erfc", (X,), {}, np.vectorize(erfc)(X)),
    ("frac", (X,), {}, X - np.trunc(X)),
    ("hypot", (X, Y), {}, np.hypot(X, Y)),
    ("logaddexp", (X, Y), {}, np.logaddexp(X, Y)),
    ("logaddexp", (ODD[[0, 5]], ODD[[0, 1]]), {}, ODD[[0, 5]]),
    ("isclose", (X, X * F32(1.5), 0.2, 0.5), {}, np.abs(X / 2) <= 0.5 + 0.3 * np.abs(X)),
    ("isclose", (ODD[[0, 1, 5]], ODD[[5, 1, 5]]), {}, np.array([False, True, True])),
    ("addcmul", (X, Y, X), {"value": 3}, X + 3 * X * Y),
    ("addcdiv", (X, Y, POSITIVE), {"value": 3}, X + 3 * Y / POSITIVE),
    ("lerp", (X, Y, 0.3), {}, X + F32(0.3) * (Y - X)),
    ("nan_to_num", (ODD,), {}, np.nan_to_num(ODD)),
    ("nan_to_num", (I,), {}, I),
    ("round", (I,), {"decimals": 2}, I),
    ("nan_to_num", (ODD, 1, 2, 3), {}, np.nan_to_num(ODD, nan=1, posinf=2, neginf=3)),
]  # fmt: skip

ACTIVATIONS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("relu", (I,), {}, I.clip(0)),
    ("relu6", (X * 4,), {}, (X * 4).clip(0, 6)),
    ("hardtanh", (X,), {}, X.clip(-1, 1)),
    ("hardtanh", (X, -0.5, 2), {}, X.clip(-0.5, 2)),
    ("sigmoid", (X,), {}, SIGMOID),
    ("silu", (X,), {}, X * SIGMOID),
    ("gelu", (X,), {}, X * PHI),
    ("gelu", (X,), {"approximate": "tanh"}, X * TANH_PHI),
    ("hardsigmoid", (X * 2,), {}, (X * 2 + 3).clip(0, 6) / 6),
    ("hardswish", (X * 2,), {}, X * 2 * (X * 2 + 3).clip(0, 6) / 6),
    ("leaky_relu", (X,), {}, np.where(X > 0, X, X * F32(0.01))),
    ("leaky_relu", (X, 0.3), {}, np.where(X > 0, X, X * F32(0.3))),
    ("rrelu", (X,), {}, np.where(X > 0, X, X * F32(11 / 48))),
    ("prelu", (X, W), {}, np.where(X > 0, X, X * W[:, None])),
    ("prelu", (X, W[:1]), {}, np.where(X > 0, X, X * W[0])),
    ("elu", (X,), {}, ELU),
    ("elu", (X, 2, 3, 0.5), {}, np.where(X > 0, 3 * X, 6 * np.expm1(X / 2))),
    ("celu", (X, 2.0), {}, np.where(X > 0, X, 2 * np.expm1(X / 2))),
    ("selu", (X,), {}, 1.05070098 * np.where(X > 0, X, 1.67326324 * np.expm1(X))),
    ("softplus", (X,), {}, SOFTPLUS),
    ("softplus", (X, 2, 1), {}, np.where(2 * X > 1, X, np.log1p(np.exp(2 * X)) / 2)),
    ("log_sigmoid", (X,), {}, np.log(SIGMOID)),
    ("mish", (X,), {}, X * np.tanh(SOFTPLUS)),
    ("glu", (X,), {}, X[..., :2] * SIGMOID[..., 2:]),
    ("glu", (X, 0), {}, X[:1] * SIGMOID[1:]),
    ("softshrink", (X, 0.7), {}, np.sign(X) * (np.abs(X) - 0.7).clip(0)),
    ("hardshrink", (X, 0.7), {}, np.where(np.abs(X) > 0.7, X, F32(0))),
    ("hardshrink", (ODD,), {}, np.where(ODD == 0, F32(0), ODD)),
    ("threshold", (X, 0.5, -3), {}, np.where(X > 0.5, X, F32(-3))),
    ("logit", (POSITIVE / 20,), {}, np.log(POSITIVE / (20 - POSITIVE))),
    ("logit", (INSIDE, 0.25), {}, np.log(INSIDE.clip(0.25, 0.75) / (1 - INSIDE.clip(0.25, 0.75)))),
    ("softsign", (X,), {}, X / (1 + np.abs(X))),
    ("softmax", (X, 1), {}, np.exp(LOG_SOFTMAX)),
    ("log_softmax", (X, 1), {}, LOG_SOFTMAX),
    ("softmax", (np.array(2, F32), 0), {}, np.array(1, F32)),
    ("log_softmax", (np.array(2, F32), 0), {}, np.array(0, F32)),
]


def standard(x: np.ndarray, axes: tuple[int, ...], eps: float) -> np.ndarray:
    """Mean 0 and deviation 1, about."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def inverse(x: np.ndarray, axes: tuple[int, ...], eps: float) -> np.ndarray:
    return 1 / np.sqrt(x.var(axes, keepdims=True) + eps)


S, T, M, V = Y[0, :, 1], Y[0, :, 2], Y[1, :, 0], POSITIVE[0, :, 0]


def channels(value: np.ndarray) -> np.ndarray:
    return value[:, None]


Q = np.linspace(-2, 2, 2 * 4 * 5).reshape(1, 2, 4, 5).astype(F32) ** 3
FOUR = np.concatenate([X, Y[:, :1]], 1)
GROUPS = standard(FOUR.reshape(2, 2, -1), (2,), 0.1).reshape(FOUR.shape)
EMPTY = np.zeros(0, F32)
BENT = np.outer(X, Y)[:2, :16].reshape(2, 4, 4)
TARGET = np.array([[2, 0, 1, -100], [0, 1, 1, 2]])
PICKED = np.take_along_axis(LOG_SOFTMAX, np.maximum(TARGET, 0)[:, None], 1)[:, 0]
LOSS = np.where(TARGET < 0, F32(0), -PICKED)
WEIGHTS = np.where(TARGET < 0, F32(0), V[np.maximum(TARGET, 0)])

LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    (
        "batch_norm", (X, S, T, M, V, False, 0.1, 0.5), {},
        (X - channels(M)) / np.sqrt(channels(V) + 0.5) * channels(S) + channels(T),
    ),
    (
        "batch_norm", (X, None, T, M, V, True, 0.1, 0.5), {},
        standard(X, (0, 2), 0.5) + channels(T),
    ),
    ("native_batch_norm", (X, S, None, M, V, 0.1, 0.5), {}, (
        (X - channels(M)) / np.sqrt(channels(V) + 0.5) * channels(S), EMPTY, EMPTY,
    )),
    ("native_batch_norm", (X, S, T), {"eps": 0.5, "training": True}, (
        standard(X, (0, 2), 0.5) * channels(S) + channels(T),
        X.mean((0, 2)), inverse(X, (0, 2), 0.5).reshape(-1),
    )),
    (
        "instance_norm", (X, S, T, None, None, True, 0.1, 0.5), {},
        standard(X, (2,), 0.5) * channels(S) + channels(T),
    ),
    (
        "instance_norm", (X, S, None, M, V, False, 0.1, 0.5), {},
        (X - channels(M)) / np.sqrt(channels(V) + 0.5) * channels(S),
    ),
    ("layer_norm", (X, (3, 4), Y[0], Y[1], 0.5), {}, standard(X, (1, 2), 0.5) * Y[0] + Y[1]),
    ("native_layer_norm", (X, (4,)), {"eps": 0.5}, (
        standard(X, (2,), 0.5), X.mean(2, keepdims=True), inverse(X, (2,), 0.5),
    )),
    (
        "rms_norm", (X, (4,), Y[0, 0], 0.5), {},
        X / np.sqrt((X * X).mean(2, keepdims=True) + 0.5) * Y[0, 0],
    ),
    ("rms_norm", (X, (3, 4)), {}, X / np.sqrt((X * X).mean((1, 2), keepdims=True))),
    (
        "group_norm", (FOUR, 2, X[0, 0], Y[0, 0], 0.1), {},
        GROUPS * channels(X[0, 0]) + channels(Y[0, 0]),
    ),
    ("native_group_norm", (FOUR, None, None, 2, 4, 4, 2, 0.1), {}, (
        GROUPS, FOUR.reshape(2, 2, -1).mean(2), inverse(FOUR.reshape(2, 2, -1), (2,), 0.1)[..., 0],
    )),
    ("mse_loss", (X, Y), {}, ((X - Y) ** 2).mean()),
    ("mse_loss", (X, Y, 2), {}, ((X - Y) ** 2).sum(dtype=F32)),
    ("l1_loss", (X, Y, 0), {}, np.abs(X - Y)),
    ("nll_loss", (LOG_SOFTMAX, TARGET), {}, LOSS.sum() / 7),
    ("nll_loss", (LOG_SOFTMAX, TARGET, V), {}, (LOSS * WEIGHTS).sum() / WEIGHTS.sum()),
    ("nll_loss", (LOG_SOFTMAX, TARGET, V, 2), {}, (LOSS * WEIGHTS).sum()),
    ("nll_loss", (LOG_SOFTMAX, TARGET, None, 0), {}, LOSS),
    ("nll_loss", (LOG_SOFTMAX, TARGET % 3, None, 2, 2), {}, -PICKED[TARGET % 3 != 2].sum()),
    ("nll_loss", (LOG_SOFTMAX[0, :, 0], np.array(2)), {}, np.asarray(-LOG_SOFTMAX[0, 2, 0])),
    ("cross_entropy_loss", (X, TARGET), {}, LOSS.sum() / 7),
    ("cross_entropy_loss", (X[0, :, 0], np.array(2)), {}, np.asarray(-LOG_SOFTMAX[0, 2, 0])),
    (
        "nll_loss", (LOG_SOFTMAX[0, :, 0], np.array(2), V, 0), {},
        np.asarray(-LOG_SOFTMAX[0, 2, 0] * V[2]),
    ),
    ("matmul", (X,), {"other": Y[0].T}, X @ Y[0].T),
    ("linear", (X, Y[0], S), {}, X @ Y[0].T + S),
    ("addmm", (S, X[0], Y[0].T, 2, 3), {}, 2 * S + 3 * (X[0] @ Y[0].T)),
    ("addmm", (S, X[0], Y[0].T, 0), {}, X[0] @ Y[0].T),
    ("addmv", (S, X[0], Y[0, 0]), {}, S + X[0] @ Y[0, 0]),
    ("baddbmm", (S, X, Y.swapaxes(1, 2), 2), {}, 2 * S + X @ Y.swapaxes(1, 2)),
    ("addbmm", (S, X, Y.swapaxes(1, 2), 1, 2), {}, S + 2 * (X @ Y.swapaxes(1, 2)).sum(0)),
    ("outer", (S, T), {}, np.outer(S, T)),
    ("einsum", ("ijk,ljk->il", (X, Y)), {}, np.einsum("ijk,ljk->il", X, Y)),
    (
        "bilinear", (X[0], Y[0], BENT, S[:2]), {},
        np.einsum("ni,oij,nj->no", X[0], BENT, Y[0]) + S[:2],
    ),
    ("diff", (X,), {}, np.diff(X)),
    ("diff", (X, 2, 1), {}, np.diff(X, 2, 1)),
    ("diff", (X, 1, 1, Y, X), {}, np.diff(X, 1, 1, Y, X)),
    ("diff", (I > 0,), {}, np.diff(I > 0)),
    (
        "_weight_norm", (X, Y[:, :1, :1]), {},
        X * Y[:, :1, :1] / np.sqrt((X * X).sum((1, 2), keepdims=True)),
    ),
    (
        "cosine_similarity", (X, Y, 2), {},
        (X * Y).sum(2) / np.sqrt((X * X).sum(2) * (Y * Y).sum(2)),
    ),
    ("cosine_similarity", (X * 0, Y), {}, np.zeros((2, 4), F32)),
    ("pairwise_distance", (X, Y, 2, 0.5), {}, np.sqrt(((X - Y + F32(0.5)) ** 2).sum(-1))),
    ("pairwise_distance", (X, Y, 1, 0, True), {}, np.abs(X - Y).sum(-1, keepdims=True)),
    ("cdist", (X, Y[:, :2]), {}, np.sqrt(((X[:, :, None] - Y[:, None, :2]) ** 2).sum(-1))),
    ("pdist", (X[0], 1), {}, np.abs(X[0, [0, 0, 1]] - X[0, [1, 2, 2]]).sum(-1)),
    ("cross", (X, Y, 1), {}, np.cross(X, Y, axis=1)),
    ("cross", (X, Y), {}, np.cross(X, Y, axis=1)),
    ("cross", (X[:, :, :3], Y[:, :, :3]), {}, np.cross(X[:, :, :3], Y[:, :, :3], axis=1)),
    ("linalg_cross", (X[:, :, :3], Y[:, :, :3]), {}, np.cross(X[:, :, :3], Y[:, :, :3], axis=2)),
    ("tensordot", (X, Y, (2, 0), (2, 0)), {}, np.tensordot(X, Y, ((2, 0), (2, 0)))),
    ("tensordot", (X, Y, (1,), (1,)), {}, np.tensordot(X, Y, ((1,), (1,)))),
    ("count_nonzero", (I, 1), {}, np.count_nonzero(I, 1)),
    ("trace", (X[0],), {}, np.trace(X[0])),
    ("embedding", (Y[0], TARGET % 3), {}, Y[0][TARGET % 3]),
]  # fmt: skip
ALL = [*ELEMENTWISE, *ACTIVATIONS, *LAYERS]
IDS = [f"{each[0]}-{n}" for n, each in enumerate(ALL)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "given", "named", "expected"), ALL, ids=IDS)
def test_an_operator_follows_its_formula(
    name: str, given: tuple[Any, ...], named: dict[str, Any], expected: Any
) -> None:
    check(f"aten.{name}", given, named, expected)


def test_what_has_no_code_is_refused() -> None:
    for name, given, said in (
        ("div", (X, Y, "nearest"), "rounding_mode 'nearest'"),
        ("cross_entropy_loss", (X, X), "targets that are probabilities"),
        ("cross_entropy_loss", (X, TARGET, None, 1, -100, 0.1), "targets that are probabilities"),
        ("grid_sampler", (Q, Q[:, :, :, :2], 2), "bicubic sampling"),
    ):
        with pytest.raises(UnsupportedOperatorError, match=said):
            call(f"aten.{name}", *given)
    with pytest.raises(UnsupportedOperatorError, match=r"in training; use model\.eval"):
        call("aten.rrelu", X, training=True)
