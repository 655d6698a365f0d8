"""``dovetail debug``: scripts, JSON, the prompt, and what cannot be done."""

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.debug.prompt import COMMANDS, Prompt
from dovetail.compiler.debug.debugger import Debugger
from dovetail.isa.memories import Unit
from dovetail.vta_hw.build import HEADERS, WAVES
from tests.compiler.debug.planted import changed_instruction, subject


@pytest.fixture(scope="module")
def module(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("debug") / "digits.dvt"
    compile(digits_model, target="vta:tiny").save(path)
    return path


def run(*arguments: object, text: str = "") -> Result:
    return CliRunner().invoke(main, ["debug", *map(str, arguments)], input=text)


def commands(module: Path, *lines: str) -> list[object]:
    pairs = [part for line in lines for part in ("-c", line)]
    done = run(module, "--json", *pairs)
    assert done.exit_code == 0, done.output
    found: list[object] = json.loads(done.stdout)["commands"]
    assert len(found) == len(lines)
    return found


def test_commands_give_one_json_object(module: Path) -> None:
    until, where, words, tensor, who = commands(
        module,
        "until layer a1",
        "where",
        "print act 512 2",
        "print first_relu/quantized nhwc 0,0,:",
        "who act 530",
    )
    assert isinstance(until, dict)
    assert until["next"]["event"] == "started"
    assert isinstance(where, dict)
    assert [each["unit"] for each in where["units"]] == ["LOAD", "GEMM", "VECTOR", "STORE"]
    assert isinstance(words, dict)
    assert words["act"]["shape"] == [2, 4]
    assert isinstance(tensor, dict)
    assert tensor["shape"] == [16]
    assert isinstance(who, dict)
    assert who["writer"]["layer"] == "first"


def test_every_command_is_shown_to_people(module: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(
        "# the first layer\nuntil 40\nuntil 40 end\nuntil cycle 900\nuntil layer a1\n"
        "until layer a1 end\nuntil token gemm vector\nuntil token load gemm 4\n\n"
        "break 60\nwatch act 520\nwatch dram 0x10 0x20 r\nbreakpoints\ndelete 2\n"
        "continue\nstep\nstep gemm\nback vector 2\nreverse\nwhere\nregisters\nlist\nlist 3 2\n"
        "info 3\nlayers\ntensors\nprint par 0\nprint wgt 0\nprint dram 0 2 int32\n"
        f"print logits/quantized\nsave first_relu/quantized {tmp_path}/x.npy\nweights a1\n"
        "weights a1 bias\nwho wgt 3\nwho dram 0\nrestart\n"
    )
    done = run(module, "--script", script)
    assert done.exit_code == 0, done.output
    assert "breakpoint 1: instruction 60 start" in done.stderr
    assert "PROGRAM_COUNT 2" in done.stderr
    assert np.load(tmp_path / "x.npy").shape == (8, 8, 16)


def test_commands_are_read_from_standard_input(module: Path) -> None:
    done = run(module, "--json", text="until 40\nstep\n")
    assert [each["command"] for each in json.loads(done.stdout)["commands"]] == ["until 40", "step"]


def test_the_prompt_goes_on_after_an_error(
    digits_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = subject(digits_model)
    prompt = Prompt(Debugger(whole.module, whole.inputs))
    assert [prompt.onecmd(line) for line in ("frob", "until 40", "", "help step", "quit")] == [
        *[False] * 4,
        True,
    ]
    assert set(COMMANDS) <= set(prompt.completenames(""))
    assert prompt.completedefault("first") == ["first", "first_relu/quantized"]


def test_a_check_that_finds_something_exits_with_1(
    module: Path, digits_model: Path, tmp_path: Path
) -> None:
    done = run(module, "--model", digits_model, "--check", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["commands"][0]["passes"] is True
    whole, broken = subject(digits_model), tmp_path / "broken.dvt"
    vector = whole.of_layer(1, Unit.VECTOR)[0]
    changed_instruction(whole, vector, zero_point=3).save(broken)
    done = run(broken, "--model", digits_model, "--check", "--json")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)["commands"]
    assert found["cause"]["instruction"]["index"] == vector
    assert found["finding"]["expected"] != found["finding"]["found"]
    done = run(broken, "--model", digits_model, "--check")
    assert "its zero_point is 3, the model has -128" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "frob"], "command 1, 'frob': no command 'frob'; there are: until, step"),
        (["-c", "until 9999"], "no instruction 9999; the program has 2"),
        (["-c", "until x"], "'x'; required N [start|end|queued], cycle C"),
        (["-c", "step foo"], "'foo'; required [UNIT] [COUNT]"),
        (["-c", "step 0"], "a count from 1 on"),
        (["-c", "watch foo 3"], "no memory 'foo'; there are: act, wgt"),
        (["-c", "watch act"], "required MEMORY FIRST [LAST] [r|w|rw]"),
        (["-c", "print act"], "required MEMORY ADDRESS [COUNT], dram"),
        (["-c", "print logits/quantized a"], "index 'a'; required numbers and ranges"),
        (["-c", "print logits/quantized 99"], "out of bounds"),
        (["-c", "save x y"], "required TENSOR FILE.npy"),
        (["-c", "waves x.vcd"], "'sim' has no waveforms; use --device rtl"),
        (["-c", "waves x.vcd around"], "required FILE.fst|FILE.vcd [around INSTRUCTION]"),
        (["-c", "continue now"], "required nothing more"),
        (["-c", 'print "x'], "No closing quotation"),
        (["--check"], "give the model that the module was compiled from: --model MODEL"),
        (["--script", "/nowhere"], "cannot read script /nowhere"),
        (["--device", "toaster", "-c", "where"], "no device is called 'toaster'"),
        (["--device", "cpu", "-c", "where"], "cannot run on 'cpu'"),
        (["--around", "3", "-c", "where"], "required --waves FILE"),
        (["--model", "/nowhere.onnx", "--check"], "/nowhere.onnx"),
        (["--input", "x=/nowhere.npy", "-c", "where"], "cannot read /nowhere.npy"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    module: Path, arguments: list[str], message: str
) -> None:
    done = run(module, *arguments)
    assert done.exit_code in (1, 2)
    assert "Traceback" not in done.output
    assert message in done.output.replace("\n", " ")


def test_a_missing_module_is_said_so() -> None:
    done = run("/nowhere.dvt", "-c", "where")
    assert done.exit_code == 1
    assert "cannot read module /nowhere.dvt" in done.output


def first_and_last(path: Path) -> tuple[int, int]:
    """Time of the first and the last change of a file of waveforms."""
    if path.suffix == ".vcd":
        times = [int(line[1:]) for line in path.read_text().splitlines() if line.startswith("#")]
        return times[0], times[-1]
    # Block type, its size, then the two times; source: GTKWave's fstapi.
    kind, _, first, last = struct.unpack(">BQQQ", path.read_bytes()[:25])
    assert kind == 0
    return first, last


def test_waveforms_of_a_window_are_written(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Code that writes every signal takes longer to compile than the rest of the hardware.
    for suffix, flags in WAVES.items():
        monkeypatch.setitem(WAVES, suffix, (*flags, "--trace-depth", "1", "-CFLAGS", "-O0"))
    path = tmp_path / "window.fst"
    arguments = ("--device", "rtl", "--around", 90, "--cycles", 50)
    with monkeypatch.context() as patched:
        patched.setitem(HEADERS, ".fst", (("missing.h", "missing", "missing-dev"),))
        done = run(module, *arguments, "--waves", path)
        assert done.exit_code == 1
        assert "install missing-dev" in done.output.replace("\n", " ")
        assert not path.exists()
    done = run(module, *arguments, "--waves", path)
    if done.exit_code and "install liblz4-dev" in done.output.replace("\n", " "):
        path = path.with_suffix(".vcd")
        done = run(module, *arguments, "--waves", path)
    assert done.exit_code == 0, done.output
    first, last = first_and_last(path)
    assert first % 10 == 0
    assert last - first == 10 * 49 + 5


def test_commands_come_through_a_pipe_as_at_the_prompt(module: Path) -> None:
    done = run(module, text="help step\nuntil layer a1\n\n# why\nwhere\nquit\nnonsense\n")
    assert done.exit_code == 0, done.output
    assert done.stderr.index("step [UNIT] [COUNT]") < done.stderr.index("Units")
    assert "nonsense" not in done.stderr
    told = json.loads(run(module, "--json", text="help\nwhere\nexit\n").stdout)
    assert [each["command"] for each in told["commands"]] == ["where"]


def test_each_command_says_its_words_and_what_it_does() -> None:
    for name, command in COMMANDS.items():
        assert re.fullmatch("[A-Z].*[.]", command.doc), name
        assert not re.match("[A-Z][a-z]|.*[.]$", command.usage), name
