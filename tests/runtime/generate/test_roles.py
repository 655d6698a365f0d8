"""Roles of language models' tensors, found by names and shapes, or refused clearly."""

import pytest

from dovetail.runtime.errors import ModuleError
from dovetail.runtime.generate.cache import Update
from dovetail.runtime.generate.roles import Named, find_roles
from dovetail.runtime.tensors import TensorSignature

Tensors = dict[str, tuple[str, tuple[int, ...]]]
INT, FLOAT = "int64", "float32"
TOKEN: Tensors = {"token": (INT, (1,)), "position": (INT, (1,))}
LOGITS: Tensors = {"logits": (FLOAT, (512,))}
PAST: Tensors = {"past_keys": (FLOAT, (5, 4, 256, 8))}
NEW: Tensors = {"new_keys": (FLOAT, (5, 4, 8))}
EXPORTED: Tensors = {
    "input_ids": (INT, (1, 1)),
    "attention_mask": (INT, (1, 65)),
    "position_ids": (INT, (1, 1)),
}


def signatures(tensors: Tensors) -> tuple[TensorSignature, ...]:
    return tuple(TensorSignature(name, shape, dtype) for name, (dtype, shape) in tensors.items())


def layers(name: str, positions: int) -> Tensors:
    kinds = ("key", "value")
    return {
        name.format(layer, kind): (FLOAT, (1, 4, positions, 16))
        for layer in (0, 1)
        for kind in kinds
    }


@pytest.mark.parametrize(
    ("inputs", "outputs", "pairs", "update", "axis"),
    [
        (
            {**TOKEN, **PAST, "past_values": PAST["past_keys"]},
            {**LOGITS, **NEW, "new_values": NEW["new_keys"]},
            {"past_keys": "new_keys", "past_values": "new_values"},
            Update.ROW,
            2,
        ),
        (
            {**EXPORTED, **layers("past_key_values.{}.{}", 64)},
            {**LOGITS, **layers("present.{}.{}", 65)},
            dict(zip(layers("past_key_values.{}.{}", 1), layers("present.{}.{}", 1), strict=True)),
            Update.LAST,
            2,
        ),
        (
            {**EXPORTED, **layers("past_key_values.{}.{}", 65)},
            {**LOGITS, **layers("present_key_values.{}.{}", 65)},
            {"past_key_values.1.value": "present_key_values.1.value"},
            Update.WHOLE,
            2,
        ),
        (
            {**TOKEN, "k_cache": (FLOAT, (64, 8)), "v_cache": (FLOAT, (64, 8))},
            {"k_cache_out": (FLOAT, (1, 8)), "v_cache_out": (FLOAT, (1, 8)), "y": (FLOAT, (1, 9))},
            {"k_cache": "k_cache_out", "v_cache": "v_cache_out"},
            Update.ROW,
            0,
        ),
        (
            {"ids": (INT, (1,)), "past": (FLOAT, (2, -1, 8))},
            {**LOGITS, "present": (FLOAT, (2, -1, 8))},
            {"past": "present"},
            Update.WHOLE,
            1,
        ),
    ],
)
def test_caches_and_what_adds_to_them_are_found(
    inputs: Tensors, outputs: Tensors, pairs: dict[str, str], update: Update, axis: int
) -> None:
    roles = find_roles(signatures(inputs), signatures(outputs))
    found = {each.past.name: each.new.name for each in roles.caches}
    assert pairs.items() <= found.items()
    assert len(found) == sum("cache" in name or "past" in name for name in inputs)
    assert {each.update for each in roles.caches} == {update}
    assert {each.axis for each in roles.caches} == {axis}
    assert roles.token.name in ("token", "ids", "input_ids")
    assert roles.logits.name in ("logits", "y")


def test_a_user_can_say_what_tensors_are_for() -> None:
    inputs = signatures({"a": (INT, (1,)), "b": (INT, (1,)), "c": (FLOAT, (4, 4, 8))})
    outputs = signatures({"x": (FLOAT, (9,)), "y": (FLOAT, (4, 8))})
    named = Named("b", "a", None, "x", (("c", "y", 1),))
    roles = find_roles(inputs, outputs, named)
    assert (roles.token.name, roles.position and roles.position.name) == ("b", "a")
    assert [(each.past.name, each.axis) for each in roles.caches] == [("c", 1)]
    with pytest.raises(ModuleError, match=r"axes 0, 1 could be that of positions.*c=y:AXIS"):
        find_roles(inputs, outputs, Named("b", "a", None, "x", (("c", "y", None),)))
    with pytest.raises(ModuleError, match="no input 'd' that is not taken; there are: a, b, c"):
        find_roles(inputs, outputs, Named("d"))


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({**PAST, **TOKEN}, LOGITS, "past_keys.*0 outputs are called like it.*--cache past_keys="),
        (TOKEN, LOGITS, r"no cache among inputs \(token: int64\[1\], position"),
        ({**PAST, "x": (INT, (1,))}, {**LOGITS, **NEW}, "input x: int64.* has no other role"),
        ({**TOKEN, **PAST}, {**LOGITS, "new_keys": (FLOAT, (5, 3, 8))}, "the shapes do not fit"),
        ({**TOKEN, **PAST}, {**LOGITS, "new_keys": ("int8", (5, 4, 8))}, "one element type"),
        ({**TOKEN, **PAST}, {"a": (FLOAT, (9,)), "b": (FLOAT, (9,)), **NEW}, "no logits among"),
        ({**TOKEN, **PAST, "token": (INT, (1, 4))}, {**LOGITS, **NEW}, "one token a run"),
        ({**TOKEN, **PAST}, {**NEW, "logits": (FLOAT, (4, 512))}, "required one row of logits"),
        ({"token": (INT, (1,)), **PAST}, {**LOGITS, **NEW}, "required an input for position or"),
        (
            {**TOKEN, **PAST},
            {**LOGITS, "new_keys": (FLOAT, (5, 4, 257, 8))},
            "nothing says how much of the cache is filled",
        ),
        (
            {**TOKEN, **PAST, "mask": (INT, (1, 99))},
            {**LOGITS, **NEW},
            "required a mask of 0 and 1 as long as the caches, 256",
        ),
        (
            {**TOKEN, **PAST, "past_v": (FLOAT, (9, 8))},
            {**LOGITS, **NEW, "new_v": (FLOAT, (8,))},
            r"different lengths \(past_keys: 256, past_v: 9\)",
        ),
        (
            {**TOKEN, "past": (FLOAT, (-1, 4, -1, 8))},
            {**LOGITS, "present": (FLOAT, (-1, 4, -1, 8))},
            "could be that of positions",
        ),
        (
            {**TOKEN, "past": (FLOAT, (-1, 4, 9, 8))},
            {**LOGITS, "present": (FLOAT, (-1, 4, 1, 8))},
            "open sizes besides its positions; give them: --dim NAME=SIZE",
        ),
    ],
)
def test_other_models_are_refused(inputs: Tensors, outputs: Tensors, message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        find_roles(signatures(inputs), signatures(outputs))
