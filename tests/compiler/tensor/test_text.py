"""The text form of kernels round-trips, and says where it is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import GraphError
from dovetail.compiler.tensor.ir import (
    Affine,
    Buffer,
    Fold,
    Kernel,
    Loop,
    LoopKind,
    Product,
    Ref,
    Requantized,
    Scaled,
    Scope,
    Stage,
    Total,
    Value,
    var,
)
from dovetail.compiler.tensor.parse import parse_text
from dovetail.compiler.tensor.text import to_text

NAMES = st.text(min_size=1, max_size=10)
LOOPS = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,4}(\.(inner|outer)){0,2}", fullmatch=True)
INT8 = st.integers(-128, 127)
INT32 = st.integers(-(2**31), 2**31 - 1)


@st.composite
def refs(draw: st.DrawFn, extents: dict[str, int], names: st.SearchStrategy[str]) -> Ref:
    """An element of a buffer just large enough, of any scope and type; a new name each time."""
    indices, shape = [], []
    for _ in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(sorted(extents)), max_size=3))
        terms = {name: draw(st.integers(-3, 9)) for name in chosen}
        index = Affine.make(0, terms)
        low, high = index.limits(extents)
        start = draw(st.integers(0, 3)) - low
        indices.append(index + start)
        shape.append(high + start + 1)
    dtype = draw(st.sampled_from(("int8", "int32", "float32", "uint8", "bool")))
    buffer = Buffer(draw(names), tuple(shape), dtype, draw(st.sampled_from(Scope)))
    return Ref(buffer, tuple(indices))


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """Any kernel whose indices stay in their buffers, whether or not it means anything."""
    numbers = iter(range(1000))
    fresh = NAMES.map(lambda stem: f"{stem}{next(numbers)}")
    stages = []
    for _ in range(draw(st.integers(0, 3))):
        names = draw(st.lists(LOOPS, min_size=1, max_size=5, unique=True))
        loops = tuple(
            Loop(name, draw(st.integers(1, 6)), draw(st.sampled_from(LoopKind))) for name in names
        )
        extents = {loop.name: loop.extent for loop in loops}
        element = refs(extents, fresh)
        value: Value
        match draw(st.integers(0, 3)):
            case 0:
                value = draw(element)
            case 1:
                value = Product(draw(element), draw(element))
            case 2:
                value = Scaled(draw(element), draw(INT32))
            case _:
                value = Total(
                    Scaled(draw(element), draw(INT32)), Scaled(draw(element), draw(INT32))
                )
        finish = None
        if draw(st.booleans()):
            finish = Requantized(draw(element), draw(element), draw(INT8), draw(INT8), draw(INT8))
        table = None
        if draw(st.booleans()):
            table = Buffer(draw(fresh), (256, 4), "int8", Scope.TAB)
        stages.append(
            Stage(
                draw(NAMES),
                loops,
                frozenset(draw(st.sets(st.sampled_from(names)))),
                draw(element),
                draw(st.sampled_from(Fold)),
                value,
                finish,
                table,
            )
        )
    return Kernel(draw(NAMES), tuple(stages), draw(st.integers(0, 10**9)))


@given(kernels())
def test_text_parses_back_to_the_same_kernel(kernel: Kernel) -> None:
    assert parse_text(to_text(kernel)) == kernel


def _kernel() -> Kernel:
    x = Buffer("x", (5, 4), "int8", Scope.ACT)
    y = Buffer('a "y"', (4, 4), "int8", Scope.ACT)
    loops = (
        Loop("c.outer", 2),
        Loop("c.inner", 2, LoopKind.HARDWARE),
        Loop("k", 2, LoopKind.HARDWARE),
        Loop("l", 4, LoopKind.LANE),
    )
    row = var("c.outer") * 2 + var("c.inner")
    table = Buffer("t", (256, 4), "int8", Scope.TAB)
    source, target = Ref(x, (row + var("k"), var("l"))), Ref(y, (row, var("l")))
    stage = Stage(
        "pool", loops, frozenset({"k"}), target, Fold.MAX, source, finish=None, table=table
    )
    return Kernel("p", (stage,), 7)


def test_text_is_one_line_a_buffer_loop_and_assignment() -> None:
    assert to_text(_kernel()).splitlines() == [
        'kernel "p" macs 7',
        '  buffer "a \\"y\\"": int8[4, 4] in act',
        '  buffer "t": int8[256, 4] in tab',
        '  buffer "x": int8[5, 4] in act',
        '  stage "pool"',
        "    for c.outer in 2 serial",
        "      for c.inner in 2 hardware",
        "        for k in 2 hardware reduces",
        "          for l in 4 lane",
        '            "a \\"y\\""[c.inner + 2*c.outer, l] = '
        'lookup "t" of max("x"[c.inner + 2*c.outer + k, l])',
    ]


def test_two_buffers_of_one_name_have_no_text() -> None:
    small, large = (Buffer("b", (size,), "int8", Scope.ACT) for size in (1, 2))
    stage = Stage(
        "s",
        (),
        frozenset(),
        Ref(small, (Affine(),)),
        Fold.NONE,
        Ref(large, (Affine(),)),
    )
    with pytest.raises(GraphError, match=r"'b' is both int8\[1\] in act and int8\[2\] in act"):
        to_text(Kernel("k", (stage,)))


HEAD = 'kernel "k" macs 0\nbuffer "x": int8[4] in act\nstage "s"\nfor i in 4 serial\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no line; required kernel first"),
        ('stage "s"', "line 1: found 'stage', required kernel first"),
        ('kernel "k" macs 0\nkernel "k" macs 0', "line 2: found 'kernel', required buffer"),
        ("kernel k macs 0", "line 1: found 'k', required a name in quotes"),
        ('kernel "k" macs 0 more', "unexpected 'more' at the end"),
        ('kernel "k" macs', "the line ends too early"),
        ('kernel "k" macs 0 ?', "no token begins with '\\?'"),
        ('kernel "k" macs 0\nbuffer "x": int8[4] in nowhere', "line 2: 'nowhere' is not a valid"),
        (HEAD, "stage 's' ends without an assignment"),
        (HEAD + 'stage "t"', "line 5: found 'stage'"),
        (HEAD + '"x"[i] = "z"[i]', "line 5: 'z' is no buffer"),
        (HEAD + '"x"[i, i] = "x"[i]', "2 indices of 'x'; required 1"),
        (HEAD + '"x"[i + 1] = "x"[i]', "line 5: stage s: .* runs from 1 to 4"),
        (HEAD + '"x"[i] = sum("x"[i]', "line 5: the line ends too early"),
        ('kernel "k" macs 0\nfor i in 4 serial', "line 2: no stage is open"),
        (
            'kernel "k" macs 0\nbuffer "x": int8[4] in act\nbuffer "x": int8[4] in act',
            "line 3: buffer 'x' is declared a second time",
        ),
    ],
)
def test_text_of_another_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        parse_text(text)
