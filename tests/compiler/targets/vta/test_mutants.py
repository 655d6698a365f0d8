"""Faults put into compiled programs are noticed."""

from dataclasses import replace
from functools import cache
from itertools import compress, islice

import numpy as np
import onnx
import pytest

from dovetail.compiler.targets.vta.check import CheckError, check
from tests.end_to_end.models import Network

from .mutants import KINDS, Mutant, Subject, mutants
from .programs import TINY
from .test_cascade import SMALL, deep


def residual(seed: int) -> onnx.ModelProto:
    """Two residual blocks, a pool and a dense layer."""
    net = Network(np.random.default_rng(seed))
    x = net.conv(net.input(3, 12, 12), 12, pads=(1, 1, 1, 1), activation="Relu")
    for _ in range(2):
        y = net.conv(x, 12, pads=(1, 1, 1, 1), activation="Relu")
        x = net.add(net.conv(y, 12, pads=(1, 1, 1, 1)), x, relu=True)
    return net.model(net.dense(net.average_pool(x, 3), 10))


@cache
def on_chip() -> Subject:
    """A program whose activations are all on chip."""
    return Subject.of("on chip", residual(7), TINY)


def subjects() -> list[Subject]:
    """All on chip, streamed through little ACT, and strip by strip."""
    model = residual(7)
    return [
        on_chip(),
        Subject.of("streamed", model, replace(TINY, act_depth=256)),
        Subject.of("strips", deep(16, 16), SMALL),
    ]


def test_nearly_every_fault_is_caught() -> None:
    rng = np.random.default_rng(3)
    missed: list[Mutant] = []
    for subject in subjects():
        for mutant in islice(mutants(subject, rng), 4 * len(KINDS)):
            if subject.catches(mutant) is None:
                missed.append(mutant)
    assert len(missed) <= 2, [(mutant.kind, mutant.fault) for mutant in missed]


def test_the_gateware_differs_from_the_simulator_only_where_the_checker_refuses() -> None:
    subject = on_chip()
    # Among these a tile of weights is loaded before it was used.
    tried = list(islice(mutants(subject, np.random.default_rng(2)), 6))
    differs = subject.differ_in_rtl(tried)
    assert any(differs)
    for mutant in compress(tried, differs):
        with pytest.raises(CheckError, match="race"):
            check(mutant.instructions, TINY)
