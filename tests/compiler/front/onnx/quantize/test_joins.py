"""Joins, and coordinates, that stay in floats."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.front.onnx.node import OnnxNode
from dovetail.compiler.front.onnx.quantize.coordinates import coordinates
from dovetail.compiler.front.onnx.quantize.joins import unlike_joins
from dovetail.compiler.front.onnx.quantize.plan import Role


def node(kind: str, inputs: Sequence[str], output: str) -> OnnxNode:
    return OnnxNode(kind, output, tuple(inputs), (output,), {})


JOIN = node("Concat", "ab", "y")
ONE, FIVE = (0.0, 1.0), (-3.0, 2.0)


def found(
    *after: OnnxNode, ranges: dict[str, tuple[float, float]], role: Role = Role.PASS
) -> dict[str, str]:
    """The joins of ``y``, of a and b, and of what comes after; only moves are passed on."""
    nodes = (node("Relu", "x", "a"), JOIN, *after)
    moved = {each.outputs[0]: Role.PASS for each in nodes if each.kind in ("Concat", "Reshape")}
    roles = {each.outputs[0]: Role.FUNCTION for each in nodes} | moved | {"y": role}
    model: Any = SimpleNamespace(nodes=nodes, constants={})
    plan: Any = SimpleNamespace(roles={name: each for name, each in roles.items() if each})
    return unlike_joins(model, plan, ranges)


@pytest.mark.parametrize(
    ("b", "unlike"),
    [((-3.0, 1.0), False), (FIVE, True), ((5.0, 5.0), False), ((0.0, 0.25), False), (None, False)],
)
def test_a_join_of_a_range_four_times_as_wide_has_one_scale(b: Any, unlike: bool) -> None:
    ranges = {"a": ONE} | ({"b": b} if b else {})
    assert bool(found(ranges=ranges)) == unlike
    swapped = {"b": ONE} | ({"a": b} if b else {})
    assert bool(found(ranges=swapped)) == unlike


def test_the_reason_names_both_ranges() -> None:
    assert found(ranges={"a": ONE, "b": FIVE}) == {
        "y": "it joins 'b', over a range of 5, with 'a', over one of 1: too unlike for one scale"
    }


def test_what_integer_operators_compute_with_has_one_scale() -> None:
    ranges, moved = {"a": ONE, "b": FIVE}, node("Reshape", "y", "z")
    assert found(moved, ranges=ranges)
    assert not found(node("Relu", "y", "z"), ranges=ranges)
    assert not found(moved, node("Relu", "z", "r"), ranges=ranges)
    assert not found(ranges=ranges, role=Role.FUNCTION)


def test_ranges_of_what_is_moved_or_joined_are_those_of_its_operands() -> None:
    second = node("Concat", "zc", "last")
    moved = node("Reshape", "y", "z")
    ranges = {"a": ONE, "b": (-1.0, 2.0)}
    assert list(found(moved, second, ranges={**ranges, "c": (0.0, 12.0)})) == []
    assert list(found(moved, second, ranges={**ranges, "c": (0.0, 12.5)})) == ["last"]
    assert list(found(moved, second, ranges={"c": ONE})) == []


@pytest.mark.parametrize(
    ("shape", "after", "kept"),
    [
        ((1, 2, 5), (), {"y": "it computes coordinates, with 'p' of 1x2x5 places"}),
        ((1, 1, 5), (), {}),  # of channels
        (
            (2, 5),
            (("Relu", Role.FUNCTION),),
            {"y": "it computes coordinates, with 'p' of 2x5 places"},
        ),
        (
            (2, 5),
            (("Reshape", Role.PASS),),
            {"y": "it computes coordinates, with 'p' of 2x5 places"},
        ),
        ((2, 5), (("Gemm", Role.CONTRACTION),), {}),
        ((2, 5), (("Relu", Role.FUNCTION), ("Gemm", Role.CONTRACTION)), {}),
    ],
)
def test_places_are_added_in_floats_unless_products_follow(
    shape: tuple[int, ...], after: tuple[tuple[str, Role], ...], kept: dict[str, str]
) -> None:
    nodes, roles = [node("Add", "xp", "y")], {"y": Role.PAIR}
    for number, (kind, role) in enumerate(after):
        nodes.append(node(kind, [nodes[-1].outputs[0]], f"t{number}"))
        roles[f"t{number}"] = role
    model: Any = SimpleNamespace(nodes=nodes, constants={"p": np.zeros(shape, np.float32)})
    assert coordinates(model, SimpleNamespace(roles=roles)) == kept  # type: ignore[arg-type]
