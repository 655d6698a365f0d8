"""How many programs are tried: as many as asked for, and no more for a model in several pieces."""

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.vta import last_changes, search
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.runtime.accelerator.part import accelerator_parts
from tests.end_to_end.models import Network

ROUNDS = 8
FIRST = 4
"""Plans of a piece whose programs are made in any case, at most."""


def network(pieces: int) -> onnx.ModelProto:
    """Convolutions; between the pieces a softmax, which the CPU computes."""
    net = Network(np.random.default_rng(3))
    x = net.input(3, 12, 12)
    for piece in range(pieces):
        if piece:
            softmax = net._node("Softmax", [x.name], axis=3)
            x = net._quantized(softmax, x.shape, 1 / 255, -128)
        x = net.conv(x, 20, pads=(1, 1, 1, 1))
        x = net.conv(net.conv(x, 20, depthwise=True, pads=(1, 1, 1, 1)), 20, (1, 1))
    return net.model(x)


def compiled(pieces: int, effort: float) -> tuple[int, int]:
    """Programs that were made, and the cycles of those taken."""
    drafts: list[Draft] = []

    def counted(*given: object, **named: object) -> Draft:
        drafts.append(make_draft(*given, **named))  # type: ignore[arg-type]
        return drafts[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "make_draft", counted)
        patch.setattr(search, "MOST_ROUNDS", ROUNDS)
        module = compile(network(pieces), "vta:tiny", CompileOptions(effort=effort))
    parts = accelerator_parts(module)
    assert len(parts) == pieces
    return len(drafts), sum(part.expected_cycles for part in parts)


def test_more_effort_tries_more_and_never_ends_slower() -> None:
    few, slow = compiled(1, 0)
    many, fast = compiled(1, 1)
    assert few <= FIRST < many
    assert fast <= slow


def test_pieces_share_the_effort_of_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ROUND_OPERATIONS", 2000)
    assert compiled(2, 1)[0] < compiled(2, 2)[0]


def test_pairs_of_instructions_tried_as_one_are_part_of_the_effort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Network(np.random.default_rng(3))
    dense = net.dense(net.dense(net.input(96, 1, 1), 96), 96)
    tried: list[object] = []

    def one_more(draft: Draft, merge: object, *given: object) -> Draft:
        tried.append(merge)
        return draft

    monkeypatch.setattr(last_changes, "_may_merge", lambda draft, merge: True)
    monkeypatch.setattr(last_changes, "_merged", one_more)
    monkeypatch.setattr(search, "MOST_ROUNDS", 0)
    counts = []
    for effort in (0, 0.02, 1):
        compile(net.model(dense), "vta:tiny", CompileOptions(effort=effort))
        counts.append(len(tried))
        tried.clear()
    assert counts[0] == 0
    assert counts[1] == 5 < counts[2]
