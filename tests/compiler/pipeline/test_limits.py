"""Limits of time and memory."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.errors import CompileLimitError
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.limits import OFTEN, Budget, Limits, Watch
from dovetail.compiler.pipeline.trace import Trace
from tests.end_to_end.models import random_network

AT_ONCE = Limits(seconds=1e-9)


def _model() -> onnx.ModelProto:
    return onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[2] x) => (float[2] y) { y = Abs (x) }'
    )


def test_a_compilation_that_takes_too_long_says_where() -> None:
    with pytest.raises(CompileLimitError, match=r"import: .* allowed are 1e-09 s; allow more"):
        compile(_model(), "cpu", CompileOptions(limits=AT_ONCE))


def test_a_process_that_grows_too_much_says_by_how_much() -> None:
    watch = Watch(Limits(memory_bytes=1 << 25))
    watch.check("before")
    kept = np.ones(1 << 23)
    with pytest.raises(CompileLimitError, match=r"fuse: compiling has taken \d+ MiB; .* 32 MiB"):
        watch.check("fuse")
    del kept


def test_the_environment_and_the_command_line_set_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_MOST_COMPILE_SECONDS", "60")
    monkeypatch.setenv("DOVETAIL_MOST_MEMORY", "5e9")
    limits = CompileOptions.from_environment().limits
    assert (limits.seconds, limits.memory_bytes) == (60, 5_000_000_000)
    onnx.save(_model(), tmp_path / "m.onnx")
    words = ["compile", str(tmp_path / "m.onnx"), "--target", "cpu", "-o", str(tmp_path / "m.dvt")]
    result = CliRunner().invoke(main, [*words, "--most-compile-seconds", "1e-9"])
    assert result.exit_code == 1
    assert "--most-compile-seconds" in result.output


def test_a_budget_is_used_up_beyond_its_limits_and_looked_at_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(steps=OFTEN + 1, nodes=2, elements=10, elements_a_byte=3, work=5)
    budget, seen = Budget(Watch(limits)), list[str]()
    monkeypatch.setattr(Watch, "check", lambda watch, where: seen.append(where))
    for _ in range(OFTEN - 1):
        budget.step("node 'a'")
    assert seen == []
    budget.step("node 'b'")
    assert seen == ["import, node 'b'"]
    budget.make("node 'c'", 4)
    budget.require_room("node 'c'", 2, 3)
    budget.grant(2)
    budget.require_room("node 'c'", 3, 4)
    budget.compute("node 'd'", 5)
    assert seen == ["import, node 'b'", "import, node 'd'"]
    for _ in range(2):
        budget.add("node 'e'")
    for use, said in (
        (
            lambda: budget.step("node 'f'"),
            rf"node 'f': the model needs more than {OFTEN + 1:,} steps",
        ),
        (
            lambda: budget.require_room("g", 13),
            r"g: the model needs more than 10 elements of const",
        ),
        (
            lambda: budget.compute("h", 1),
            r"h: .* more than 5 operations .*CompileOptions.limits.work",
        ),
        (lambda: budget.add("i"), r"import, i: the model needs more than 2 operators"),
    ):
        with pytest.raises(CompileLimitError, match=said):
            use()


@pytest.mark.parametrize("target", ["cpu", "vta:tiny"])
def test_long_loops_look_at_the_limits(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(Trace, "check", lambda self, where: seen.append(where))
    model = random_network(1) if target != "cpu" else _model()
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("DOVETAIL_CACHE", folder)
        compile(model, target)
    wanted = ["lower, node", "llvm, "] if target == "cpu" else ["plan, layer", "operations, layer"]
    for each in wanted:
        assert any(where.startswith(each) for where in seen)
