"""Prompts read in blocks: the caches, and the text, that single tokens make."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.prompts.model import prompt_model
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.options import CompileOptions
from dovetail.runtime.errors import InputError, ModuleError
from dovetail.runtime.generate import blocks
from dovetail.runtime.generate.blocks import Blocks
from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.generate.generator import Generator
from dovetail.runtime.session import Session
from dovetail.runtime.tensors import TensorSignature

from .attending import attending_model
from .exported import exported_model
from .test_decoder import Numbers

PROMPT = [int(each) for each in np.random.default_rng(1).integers(1, 256, 38)]
BLOCK = 17


@cache
def quantised(decoder: Callable[[], onnx.ModelProto] = attending_model) -> onnx.ModelProto:
    """The decoder in int8, its attention too."""
    model, samples = decoder(), []
    with Session(compile(model, "cpu")) as session:
        reading = Decoder(session)
        for token in np.random.default_rng(3).integers(1, 256, 40).tolist():
            samples.append({name: each.copy() for name, each in reading.inputs(token).items()})
            reading.step(token)
    return quantize_model(model, samples).model


@pytest.mark.parametrize("target", ["cpu", "vta:tiny"])
@pytest.mark.parametrize("decoder", [attending_model, exported_model])
def test_blocks_leave_the_caches_that_single_tokens_leave(
    decoder: Callable[[], onnx.ModelProto], target: str
) -> None:
    """So that all that follows is the same: bytes are compared, not texts."""
    model = quantised(decoder)
    soon = CompileOptions(effort=0)
    modules = (
        compile(model, target, soon),
        compile(prompt_model(model, BLOCK), target, soon),
    )
    launches = [type(part).__name__ for part in modules[1].parts].count("AcceleratorPart")
    assert launches == (target != "cpu")
    with Session(modules[0]) as session, Session(modules[1]) as reading:
        single, blocks = Decoder(session), Decoder(session, blocks=reading)
        assert blocks.blocks is not None
        blocks.blocks.least = 2
        for token in PROMPT:
            single.step(token)
        while blocks.position < len(PROMPT):
            # The second block begins within its cache of 32 positions, the third would not.
            begun = blocks.position
            read = blocks.read(PROMPT[begun:])
            assert read == (BLOCK if begun <= BLOCK else 0)
            if not read:
                blocks.step(PROMPT[blocks.position])
        expected: NDArray[np.float32]
        for name, expected in single.inputs(0).items():
            np.testing.assert_array_equal(blocks.inputs(0)[name], expected, err_msg=name)
        np.testing.assert_array_equal(blocks.step(7), single.step(7))


def test_a_text_is_the_same_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = quantised()
    modules = compile(model, "cpu"), compile(prompt_model(model, BLOCK), "cpu")
    prompt = " ".join(map(str, PROMPT[:30]))
    with Generator(modules[0], Numbers()) as generator:
        plain = generator.tell(prompt, 6)
    with Generator(modules[0], Numbers(), blocks=modules[1]) as generator:
        story = generator.tell(prompt, 6)
        # The last token is not read with the others: its logits are wanted.
        assert (story.blocks, story.block_tokens, story.runs) == (2, 29, 6)
        assert story.figures()["block_tokens"] == 29
        with pytest.raises(InputError, match="token 300; the model's are 0 to 255"):
            generator.decoder.read([1, 300])
    assert (story.tokens, story.text) == (plain.tokens, plain.text)
    with Session(modules[0]) as session, pytest.raises(ModuleError, match="of the same decoder"):
        Decoder(session, blocks=session)
    # A block is read where it fits and takes no longer than its tokens one by one.
    with Session(modules[0]) as session, Session(modules[1]) as reading:
        for own, alone, least in ((70, 10, 7), (71, 10, 8), (5, 10, 2), (9, 0, 9)):
            cycles = {session: alone, reading: own}
            monkeypatch.setattr(blocks, "_cycles", cycles.__getitem__)
            found = Decoder(session, blocks=reading).blocks
            assert found is not None
            assert (found.least, found.size) == (least, BLOCK)
            assert found.fits(found.past, least)
            assert not found.fits(found.past + 1, least)
            assert not found.fits(found.past, least - 1)


def test_a_cache_of_fewer_dimensions_is_not_one_of_the_decoder() -> None:
    """Its positions would be its third dimension, or the fourth that it lacks."""
    cache, row = TensorSignature("past", (1, 2, 9, 4), "float32"), (1, 2, 4)
    token = TensorSignature("token", (1,), "int64")
    new = TensorSignature("new", row, "float32")
    for axis in (3, 4):
        kept = SimpleNamespace(past=TensorSignature("past", (1, 2, 9, 4, 1), "float32"), axis=axis)
        caches = (SimpleNamespace(**vars(kept), new=new, row=row),)
        roles: Any = SimpleNamespace(token=token, position=None, mask=None, caches=caches)
        session: Any = SimpleNamespace(inputs=(replace(token, shape=(4,)), cache), outputs=(new,))
        with pytest.raises(ModuleError, match="of the same decoder"):
            Blocks(session, session, roles)
