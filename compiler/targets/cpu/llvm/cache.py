"""Machine code on disk, found by what it was made from.

An entry holds the bytes of workspace, then the object file.
"""

import functools
import hashlib
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from dovetail.isa import cache
from dovetail.isa.frozen import frozen

from ....loops import ir
from ....loops.expressions import (
    Binary,
    Bitcast,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    Variable,
)
from ....loops.traverse import bodies, fold, own_expressions
from ..arch import arch
from .target import CpuTarget

__all__ = ["BuiltFunction", "content_key", "fetch", "keep"]

_WORKSPACE_BYTES = 8


@frozen
class BuiltFunction:
    """symbol: the name in ``code``, an object file.  workspace_bytes: that a call needs."""

    symbol: str
    workspace_bytes: int
    code: bytes


def content_key(function: ir.Function, target: CpuTarget, threads: int) -> str:
    """Identity of the machine code of ``function``, except for the function's name."""
    digest = hashlib.sha256(_compiler_key())
    digest.update(
        f"{target.arch.triple}\0{target.cpu}\0{target.feature_string}\0{threads}\0".encode()
    )
    digest.update(_content(function).encode())
    return digest.hexdigest()[:40]


def _content(function: ir.Function) -> str:
    """All of ``function`` but its name; a shared expression appears once, by a number."""
    numbers: dict[str, int] = {}
    memo: dict[int, tuple[Expr, int]] = {}

    def number(node: Expr, below: tuple[int, ...]) -> int:
        return numbers.setdefault(f"{_own(node)} {below}", len(numbers))

    def statement(stmt: ir.Stmt) -> str:
        own = [fold(expr, number, memo) for expr in own_expressions(stmt)]
        parts = "".join(map(statement, bodies(stmt)))
        return f"({type(stmt).__name__} {_named(stmt)} {own} {parts})"

    body = statement(function.body)
    return f"{function.inputs} {function.outputs} {body} {list(numbers)}"


def _own(node: Expr) -> str:
    """An expression without its operands, as text."""
    match node:
        case Load():
            return f"load {node.buffer}"
        case Unary() | Binary():
            return f"{type(node).__name__} {node.function}"
        case Cast() | Bitcast():
            return f"{type(node).__name__} {node.dtype}"
        case Select():
            return "select"
        case MultiplyAdd():
            return "fma"
        case Constant() | Variable():
            return repr(node)


def _named(stmt: ir.Stmt) -> str:
    """A statement without its expressions and bodies, as text."""
    match stmt:
        case ir.For():
            return f"{stmt.variable} {stmt.kind}"
        case ir.Let():
            return repr(stmt.variable)
        case ir.Allocate() | ir.Store():
            return repr(stmt.buffer)
        case ir.Update():
            return f"{stmt.buffer} {stmt.function}"
        case ir.Invoke():
            regions = [(region.buffer, region.shape) for region in stmt.operands]
            return f"{stmt.intrinsic} {regions}"
        case ir.If():
            return str(stmt.otherwise is None)
        case ir.Block() | ir.While():
            return ""


def fetch(folder: Path, key: str, symbol: str) -> BuiltFunction | None:
    """The entry of ``key``; None if there is none, or a damaged one."""
    data = cache.fetch(folder, _name(key))
    if data is None:
        return None
    workspace_bytes = int.from_bytes(data[:_WORKSPACE_BYTES], "little")
    return BuiltFunction(symbol, workspace_bytes, data[_WORKSPACE_BYTES:])


def keep(folder: Path, key: str, built: BuiltFunction) -> None:
    """Write an entry; a folder that cannot be written to is left as it is."""
    workspace = built.workspace_bytes.to_bytes(_WORKSPACE_BYTES, "little")
    cache.keep(folder, _name(key), workspace + built.code)


def _name(key: str) -> str:
    return f"cpu/{key[:2]}/{key[2:]}"


@functools.cache
def _compiler_key() -> bytes:
    """Hash of the sources that decide what code is made, and of LLVM's version."""
    digest = hashlib.sha256(f"{version('llvmlite')} {llvm.llvm_version_info}".encode())
    folders = (
        Path(__file__).parent,
        Path(str(arch.__file__)).parent,
        Path(str(ir.__file__)).parent,
    )
    for path in sorted(path for folder in folders for path in folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()
