"""Programs that come from files: assembly, bytes of instructions, modules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dovetail.isa.assembly import assemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.program import check_program, program_to_bytes
from dovetail.runtime.accelerator.part import accelerator_parts
from dovetail.runtime.errors import DeviceError, InputError, ModuleError
from dovetail.runtime.module import Module
from dovetail.runtime.program import run_program
from dovetail.runtime.result import RunResult

from ..front.table import FRONTS

if TYPE_CHECKING:
    from dovetail.runtime.generate.roles import Named

__all__ = [
    "assemble_file",
    "block_model",
    "is_model",
    "open_blocks",
    "open_module",
    "opening",
    "read_code",
    "run_file",
]


def is_model(path: Path) -> bool:
    """True if a file is a model of a format that there is a front end for, by its suffix."""
    return path.suffix.lower() in FRONTS


def open_module(
    path: Path,
    target: str,
    records: Sequence[Path] = (),
    key: Path | None = None,
    dims: Mapping[str, int] | None = None,
    effort: float = 1,
) -> Module:
    """The module in a file (.dvt), or that of a model, compiled here for ``target``.

    records: of tuning, for a model only.  key: a file with the public key that a module must be
    signed by.  dims: sizes of a model's symbolic dimensions.  effort: as ``CompileOptions`` has it.
    Raises what loading and compiling raise, and InputError for records, dims or an effort with a
    module: those of a module were chosen as it was compiled.
    """
    if not is_model(path):
        if records:
            raise InputError(f"--records with the module {path}; required a model")
        if dims:
            raise InputError(f"--dim with the module {path}; required a model")
        if effort != 1:
            raise InputError(f"--effort with the module {path}; required a model")
        if key is None:
            return Module.load(path)
        from dovetail.runtime.trust.signature import load_signed

        return load_signed(path, key)
    if key is not None:
        raise InputError(f"--require-signature with the model {path}; required a module (.dvt)")
    from ..driver import compile_model
    from ..options import CompileOptions

    options = replace(CompileOptions.from_environment(), records=tuple(records), effort=effort)
    return compile_model(path, target, options, dims)


def open_blocks(
    given: str,
    model: Path,
    target: str,
    named: "Named",
    dims: Mapping[str, int] | None = None,
    effort: float = 1,
) -> Module:
    """The module that reads a decoder's prompts: in a file (.dvt), or made here of ``model``.

    given: the file, or how many tokens a block has.  effort: as of ``open_module``.
    Raises what loading and compiling raise, and InputError for a number with a module.
    """
    if not given.isdecimal():
        return Module.load(Path(given))
    if not is_model(model):
        raise InputError(
            f"blocks of {given} tokens of the module {model}; required a model, or the file that "
            "dovetail compile --tokens makes of it"
        )
    from ..driver import compile_model
    from ..options import CompileOptions

    options = replace(CompileOptions.from_environment(), effort=effort)
    return compile_model(block_model(model, int(given), named, dims), target, options)


def block_model(
    model: Path,
    tokens: int,
    named: "Named | None" = None,
    dims: Mapping[str, int] | None = None,
) -> object:
    """A decoder's model, ONNX's own object, as one that reads so many tokens.

    named: what its tensors are for, where their names do not say it.  dims: of the decoder.
    Raises ModelError for a file that is not ONNX, and where the model is not a decoder.
    """
    from ..front.onnx.prompts.model import prompt_model
    from ..front.onnx.source import SourceModel

    return prompt_model(SourceModel.load(model).bind(dims or {}).proto, tokens, named)


def opening(path: Path) -> str:
    """Progress message for ``open_module`` of a file."""
    return "compiling" if is_model(path) else "reading"


def assemble_file(path: Path, config: HardwareConfig) -> bytes:
    """The bytes of the program in an assembly file, checked for ``config``.

    Raises ModuleError when the file cannot be read, IsaError naming the line or the instruction.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModuleError(f"cannot read {path}: {error}") from None
    program = assemble(text, config)
    check_program(program, config)
    return program_to_bytes(program)


def read_code(path: Path) -> bytes:
    """The bytes of the instructions in a module (.dvt), of all its programs, or in another file.

    Raises ModuleError when the file cannot be read, or is a module without a program.
    """
    if path.suffix != ".dvt":
        try:
            return path.read_bytes()
        except OSError as error:
            raise ModuleError(f"cannot read {path}: {error.strerror}") from None
    module = Module.load(path)
    try:
        return b"".join(part.code for part in accelerator_parts(module))
    except DeviceError:
        raise ModuleError(f"{path} is a module for {module.target!r}; it has no program") from None


def run_file(
    path: Path, config: HardwareConfig, inputs: Mapping[str, NDArray[Any]], device: str
) -> RunResult:
    """Run the program of an assembly file (.s) or of bytes, with input ``dram``.

    Bytes are not checked: an illegal instruction is the machine's to find.  Raises InputError when
    the only input is not ``dram``, and what ``run_program`` and ``assemble_file`` raise.
    """
    if set(inputs) != {"dram"}:
        found = ", ".join(inputs) or "none"
        raise InputError(f"found inputs {found}; a program needs one, 'dram', uint8[N]")
    code = assemble_file(path, config) if path.suffix == ".s" else read_code(path)
    return run_program(code, config, inputs["dram"], device)
