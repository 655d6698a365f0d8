"""Words of the command line that stand for values: what they mean, and which are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from dovetail.compiler import __main__ as command_line
from dovetail.compiler.cli import start
from dovetail.compiler.cli.arrays import (
    dimensions_option,
    read_dimensions,
    read_inputs,
    write_outputs,
)
from dovetail.compiler.cli.decoders import roles_options
from dovetail.compiler.cli.numbers import LARGEST, NOT_NEGATIVE, POSITIVE
from dovetail.compiler.cli.quantize.command import quantize
from dovetail.compiler.cli.quantize.runners import load_metric
from dovetail.runtime.errors import ModuleError

from .commands import invoke, refused


def named(name: str) -> click.ParamType:
    """The type of an option of ``quantize``."""
    return next(each.type for each in quantize.params if each.name == name)


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        *(("max_drop", word, value) for word, value in (("1%", 0.01), ("0.25", 0.25))),
        *(("max_drop", word, value) for word, value in (("0", 0), ("1", 1), ("100%", 1))),
        ("resize", "256", (256,)),
        ("resize", "1x320", (1, 320)),
        ("mean", "0.5,-2,1/4", (0.5, -2.0, 0.25)),
        ("std", "0.5", (0.5,)),
        ("scale", "1/255", 1 / 255),
    ],
)
def test_a_word_has_a_value(name: str, word: str, value: object) -> None:
    assert named(name).convert(word, None, None) == value


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        (
            "max_drop",
            ("1.5", "101%", "-0.1", "few", "nan"),
            "required a share from 0 to 1, or in %",
        ),
        ("resize", ("0", "3x0", "1x2x3", "-4", "x", ""), "required SIZE or HEIGHTxWIDTH"),
        ("mean", ("a", "1,,2", "1/0", "inf", "nan"), "required numbers with commas between"),
        ("std", ("0", "1,0"), "required numbers that are not 0"),
        ("scale", ("0", "1,2"), "required one number that is not 0"),
    ],
)
def test_another_word_is_refused(name: str, words: tuple[str, ...], message: str) -> None:
    for word in words:
        with pytest.raises(click.BadParameter, match=message) as found:
            named(name).convert(word, None, None)
        assert repr(word) in found.value.message


def test_numbers_are_finite_and_no_larger_than_any_that_is_meant() -> None:
    assert POSITIVE.convert(str(LARGEST), None, None) == LARGEST
    assert NOT_NEGATIVE.convert("0", None, None) == 0
    for kind, words in (
        (POSITIVE, ("0", "-1", "nan", "inf", "5e18", "a")),
        (NOT_NEGATIVE, ("-1", "nan", "inf", "5e18")),
    ):
        for word in words:
            with pytest.raises(click.BadParameter):
                kind.convert(word, None, None)


def test_sizes_may_be_given_again_and_again() -> None:
    command = click.command()(dimensions_option(lambda dims: dims))
    given = ["--dim", "n=1", "--dim", "m=2"]
    assert command.main(given, standalone_mode=False) == ("n=1", "m=2")


def test_arrays_and_sizes_are_given_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    given = read_inputs((f"x={tmp_path}/a.npy", f"y={tmp_path}/a.npy"))
    assert {name: array.tolist() for name, array in given.items()} == {
        "x": [0, 1, 2],
        "y": [0, 1, 2],
    }
    assert read_dimensions(("n=1", "m=20")) == {"n": 1, "m": 20}


@pytest.mark.parametrize(
    ("read", "pairs", "message"),
    [
        (read_inputs, ("x",), "--input 'x'; required NAME=FILE.npy"),
        (read_inputs, ("=a.npy",), "--input '=a.npy'; required NAME=FILE.npy"),
        (read_dimensions, ("n",), "--dim 'n'; required NAME=SIZE"),
        (read_dimensions, ("n=-1",), "--dim 'n=-1'; required NAME=SIZE"),
        (read_dimensions, ("=3",), "--dim '=3'; required NAME=SIZE"),
        (read_dimensions, ("n=1", "n=1"), "--dim 'n' is given twice"),
    ],
)
def test_pairs_of_another_form_are_refused(
    read: Callable[[tuple[str, ...]], object], pairs: tuple[str, ...], message: str
) -> None:
    with pytest.raises(click.UsageError, match=message):
        read(pairs)


def cache(word: str) -> Any:
    """The caches that a command is given."""
    command = click.command()(roles_options(lambda named: named))
    return command.main(["--cache", word, "--token", "t"], standalone_mode=False)


def test_a_cache_has_an_axis_behind_the_last_colon() -> None:
    assert cache("a=b").caches == (("a", "b", None),)
    assert cache("a=b:0").caches == (("a", "b", 0),)
    assert cache("a:0=b:1:2").caches == (("a:0", "b:1", 2),)
    assert (cache("a=b").token, cache("a=b").mask) == ("t", None)
    for word in ("a", "a=", "=b", "a=b:c", "a=b:-1"):
        with pytest.raises(click.UsageError, match=f"--cache '{word}'; required INPUT=OUTPUT or"):
            cache(word)


def test_a_metric_is_a_function_of_a_module() -> None:
    assert load_metric("math:floor")(1.5) == 1
    with pytest.raises(click.UsageError, match="--metric math:pi: no such function"):
        load_metric("math:pi")
    with pytest.raises(click.UsageError, match="--metric none_such:f: No module"):
        load_metric("none_such:f")


def test_outputs_whose_names_look_alike_are_files_apart(tmp_path: Path) -> None:
    outputs = {"a/b": np.zeros(1), "a_b": np.ones(2), "c.d+e-1": np.ones(3)}
    found = write_outputs(tmp_path / "new" / "out", outputs)
    assert [Path(each).name for each in found.values()] == ["a_b.npy", "a_b_.npy", "c.d+e-1.npy"]
    assert [np.load(each).size for each in found.values()] == [1, 2, 3]
    (tmp_path / "file").touch()
    with pytest.raises(ModuleError, match=f"cannot make folder {tmp_path}/file/out: Not a dir"):
        write_outputs(tmp_path / "file" / "out", outputs)


def test_names_of_files_end_as_their_content_asks(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    refused(invoke("benchmark", model, "--svg", "a.png"), "a.png; required FILE.svg", 2)
    refused(
        invoke("inspect", model, "--key", "a.pub"), f"--key with the model {model}; only mod", 2
    )


def test_a_command_that_is_interrupted_ends_with_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "main", lambda: None)
    assert start.main() == 0
    monkeypatch.setattr(command_line, "main", interrupted)
    assert start.main() == 1
    assert capsys.readouterr().err == "\nAborted!\n"
