"""Nests that are read from loop programs, and what is none."""

import re

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.affine import Linear
from dovetail.compiler.loops.expressions import Buffer, Scope, Variable
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.targets.vta.nest import SECOND_STEP, Fold, Product, Ref, Scaled, Total
from dovetail.compiler.targets.vta.read_nests import NestError, read_nests

GOOD = """
function "layer"
  input x: int8[3, 6, 4] act
  input w: int8[6, 4]
  output y: int8[3, 6, 4] act
  alloc acc: int32[3, 6, 4] acc:
    for a in 3:
      for b in 6:
        for l in 4:
          acc[a, b, l] = 0:int32
    for o in 3:
      alloc w.tile: int8[2, 4] tap:
        for i in 2:
          for j in 4:
            w.tile[i, j] = w[o * 2 + i, j]
        for acc.c in 3 hardware:
          for p in 2 hardware:
            for acc.l in 4 vector:
              acc[acc.c, o * 2 + p, acc.l] add= cast(int32, x[acc.c, o * 2 + p, acc.l]) * (cast(int32, w.tile[p, acc.l]) + 7:int32)
    for c in 3:
      for q in 6 hardware:
        for l.2 in 4 vector:
          y[c, q, l.2] = cast(int8, min(max(cast(float32, acc[c, q, l.2]), 0.0:float32), 9.0:float32))
"""  # noqa: E501


def test_a_copy_goes_by_the_name_of_what_it_is_of() -> None:
    text = GOOD[: GOOD.index("    for c in 3:\n      for q")] + (
        "    for c in 3:\n      for q in 6 hardware:\n        for l.2 in 4 vector:\n"
        "          y[c, q, l.2] = x[c, q, l.2]\n"
    )
    kernel = read_nests(parse(text))
    sums, copy = kernel.nests
    assert [loop.name for loop in sums.loops] == ["o", "c", "p", "l"]
    assert isinstance(sums.value, Product)
    assert (sums.fold, sums.value.offset) == (Fold.SUM, 7)
    assert sums.value.right.buffer.name == "w"
    assert sums.value.right.buffer.shape == (2, 4)
    assert str(sums.value.right) == "w[p, l]"
    assert sums.reduction == frozenset()
    assert isinstance(copy.value, Ref)
    assert kernel.tiles == ()


def test_a_copy_is_whole_where_all_iterations_copy_the_same_part() -> None:
    text = """
function "layer"
  input w: int8[8, 6]
  output y: int8[8, 2] act
  for o in 4:
    alloc t: int8[2, 3] tap:
      for i in 2:
        for j in 3:
          t[i, j] = w[o * 2 + i, j + 1]
      for p in 2 hardware:
        for l in 2 vector:
          y[o * 2 + p, l] = t[p, l + 1]
"""
    (nest,) = read_nests(parse(text)).nests
    assert isinstance(nest.value, Ref)
    assert nest.value.buffer.shape == (2, 6)
    assert str(nest.value) == "w[p, l + 2]"


def test_a_fold_of_two_loops_is_one_nest() -> None:
    text = """
function "pool"
  input x: int8[5, 6] act
  output y: int8[3, 4] act
  for r in 3:
    for c in 4:
      alloc total: int8[] register:
        total[] = -128:int8
        for ky in 3:
          for kx in 3:
            total[] max= x[r + ky, c + kx]
        y[r, c] = total[]
"""
    (nest,) = read_nests(parse(text)).nests
    assert (nest.fold, nest.reduction) == (Fold.MAX, frozenset({"ky", "kx"}))
    wrong = text.replace("-128:int8", "0:int8")
    with pytest.raises(NestError, match="required the start of a sum or maximum"):
        read_nests(parse(wrong))


def test_sums_begin_anew_where_they_are_set_to_0() -> None:
    text = """
function "sums"
  input x: int8[3, 5, 4] act
  input w: int8[3, 5, 4] tap
  output y: int32[3, 4] acc
  for t in 3:
    alloc acc: int32[4] acc:
      for m in 4:
        acc[m] = 0:int32
      for k in 5:
        for l in 4:
          acc[l] add= cast(int32, x[t, k, l]) * cast(int32, w[t, k, l])
      for n in 4:
        y[t, n] = acc[n]
"""
    sums, _ = read_nests(parse(text)).nests
    assert sums.reduction == frozenset({"k"})
    outside = """
function "sums"
  input x: int8[3, 5, 4] act
  input w: int8[3, 5, 4] tap
  output y: int32[4] acc
  for m in 4:
    y[m] = 0:int32
  for t in 3:
    for k in 5:
      for l in 4:
        y[l] add= cast(int32, x[t, k, l]) * cast(int32, w[t, k, l])
"""
    (sums,) = read_nests(parse(outside)).nests
    assert sums.reduction == frozenset({"t", "k"})


def test_factors_may_be_left_out_of_a_sum_of_two() -> None:
    text = """
function "add"
  input a: int8[4] act
  input b: int8[4] act
  output y: int32[4] acc
  for l in 4:
    y[l] = cast(int32, a[l]) + cast(int32, b[l]) * 3:int32
"""
    (nest,) = read_nests(parse(text)).nests
    assert isinstance(nest.value, Total)
    assert isinstance(nest.value.left, Scaled)
    assert (nest.value.left.factor, nest.value.right.factor) == (1, 3)
    with pytest.raises(NestError, match="is not an element with a factor"):
        read_nests(parse(text.replace("3:int32", "cast(int32, a[l])")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("add=", "max=", "required a sum that is set to 0 before"),
        ("0:int32", "1:int32", "1:int32 is not a value"),
        ("for b in 6:", "for b in 5:", "required all 72 elements"),
        ("cast(float32, acc[c, q, l.2])", "abs(cast(float32, acc[c, q, l.2]))", "is not a value"),
        ("for q in 6 hardware:", "if c < 9:", "required loops, stores and updates"),
        ("x[acc.c, o * 2 + p, acc.l]", "x[acc.c, (o + p) % 6, acc.l]", "an index is not a sum"),
        ("for p in 2 hardware", "for p in o + 1 hardware", "required a constant extent"),
        ("cast(int32, x[acc.c", "abs(cast(int32, x[acc.c", "is not an operand of an instruction"),
    ],
)
def test_what_no_instruction_could_be_is_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    text = (
        text.replace("acc.l]) * (cast", "acc.l])) * (cast")
        if new.startswith("abs(cast(i")
        else text
    )
    with pytest.raises(NestError, match=re.escape(message)):
        read_nests(parse(text.replace("[c, q,", "[c, 0,") if "if c" in new else text))


def test_a_second_factor_may_move_only_so_far_from_block_to_block() -> None:
    c, one = Linear(0, {Variable("c"): 1}), Linear(0, {})
    left = Ref(Buffer("x", (1, 1, 4), DType.INT8, Scope.ACT), (one, one, one))

    def product(words: int, scope: Scope = Scope.ACT) -> Product:
        return Product(left, Ref(Buffer("w", (9, words, 4), DType.INT8, scope), (c, one, one)))

    assert [product(SECOND_STEP + n).is_far for n in (-1, 0, 1)] == [False, True, True]
    assert not product(SECOND_STEP, Scope.TAP).is_far
    scopes = Scope.ACT, Scope.ACC, Scope.TAP
    assert [product(1, scope).is_pair for scope in scopes] == [True, True, False]
    assert str(product(3)) == "x[0, 0, 0] * w[c, 0, 0]"
