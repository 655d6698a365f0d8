"""Files that the command writes, for each of the options that ask for one."""

from itertools import chain
from pathlib import Path

import pytest

from dovetail.compiler import compile
from tests.compiler.cli.commands import invoke

FILES = {"--html": "report.html", "--trace": "run.pftrace", "--timeline": "run.svg"}


@pytest.fixture(scope="module")
def module(one_layer_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("module") / "layer.dvt"
    compile(one_layer_model, "vta:tiny").save(path)
    return path


@pytest.mark.parametrize("options", [(), *((each,) for each in FILES), tuple(FILES)])
def test_the_files_that_are_asked_for_are_written_and_named(
    options: tuple[str, ...], module: Path, tmp_path: Path
) -> None:
    pytest.importorskip("perfetto", reason="needs the extra profile")
    asked = [(option, tmp_path / FILES[option]) for option in options]
    done = invoke("profile", module, *chain.from_iterable(asked))
    assert done.exit_code == 0, done.output
    assert sorted(tmp_path.iterdir()) == sorted(path for _, path in asked)
    assert [line for line in done.stderr.splitlines() if line.startswith("written: ")] == [
        f"written: {path}" for _, path in asked
    ]
