"""Evaluation of one model on one design: compile, then count cycles on the simulator."""

import hashlib
import threading
import time
import traceback
from functools import lru_cache
from pathlib import Path

import numpy as np

import dovetail.isa
import dovetail.vta_sim
from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import find_config
from dovetail.isa.errors import DovetailError
from dovetail.isa.frozen import frozen
from dovetail.vta_sim.timing import time_program

from ..errors import ModelError, UnsupportedOperatorError
from ..front.integer import integer_graph
from ..front.stored import StoredModel
from ..front.table import open_model, store_model
from ..graph.ir import Graph
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.vta.accelerate import accelerate_graph, prepare_graph, refuse
from ..targets.vta.target import DEFAULT_CONFIG, require_whole
from .space import Design

__all__ = ["Failure", "ModelFile", "Performance", "Task", "attempt", "program_hash", "read_model"]

ONE_AT_A_TIME = threading.Lock()
"""Compilation is no faster in threads, and nothing says that it may run in several."""


@frozen
class ModelFile:
    """A model's name and its file."""

    name: str
    stored: StoredModel

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.stored.content).hexdigest()


@frozen
class Task:
    """A model on a design."""

    design: Design
    model: ModelFile


@frozen
class Performance:
    """Figures of a run; counters by the names of ``dovetail.isa.registers.COUNTERS``.

    macs: multiply-accumulates of the model.  dram_bytes: of program, constants and tensors in
    memory.  seconds: of a processor, that compiling and simulating took.
    """

    cycles: int
    macs: int
    instructions: int
    dram_bytes: int
    counters: dict[str, int]
    seconds: float


@frozen
class Failure:
    """Why a model has no figures on a design: the error's class, and its message."""

    kind: str
    message: str


def read_model(path: Path) -> ModelFile:
    """The model in a file, when all of it can run on the accelerator.

    Raises ModelError, UnsupportedOperatorError.
    """
    lanes = find_config(DEFAULT_CONFIG).block
    try:
        refusal = refuse(integer_graph(open_model(path)), lanes)
    except (ModelError, UnsupportedOperatorError) as error:
        raise type(error)(f"{path}: {error}") from None
    if refusal is not None:
        raise UnsupportedOperatorError(f"{path}: {refusal.reason}")
    return ModelFile(path.stem, store_model(path))


def attempt(task: Task) -> Performance | Failure:
    """Evaluate; every error of the compiler, expected or not, becomes a Failure."""
    try:
        with ONE_AT_A_TIME:
            return _evaluate(task)
    except DovetailError as error:
        return Failure(type(error).__name__, str(error))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return Failure(type(error).__name__, f"internal error at {where}: {error}")


def _evaluate(task: Task) -> Performance:
    begin = time.process_time()
    config = task.design.config
    options = CompileOptions(overlap=task.design.overlap)
    require_whole(_layers(task.model.stored), config)
    graph = _graph(task.model.stored, config.block, config.act_depth)
    part = accelerate_graph(graph, config, options, Trace(options), time_program)
    words = np.frombuffer(part.code, np.uint8).reshape(-1, INSTRUCTION_BYTES)
    result = time_program(words, config, part.program_address)
    return Performance(
        cycles=result.counters["cycles"],
        macs=part.macs,
        instructions=len(words),
        dram_bytes=len(part.dram),
        counters=dict(result.counters),
        seconds=round(time.process_time() - begin, 3),
    )


@lru_cache(maxsize=16)
def _layers(model: StoredModel) -> Graph:
    """The model's integer operators, found once in a process."""
    return integer_graph(open_model(model))


@lru_cache(maxsize=16)
def _graph(model: StoredModel, lanes: int, act_words: int) -> Graph:
    """The model as the backend takes it, prepared once in a process."""
    return prepare_graph(_layers(model), Trace(CompileOptions()), lanes, act_words=act_words)


@lru_cache(maxsize=1)
def program_hash() -> str:
    """Hash of all sources that decide cycles: instruction set, simulator, compiler."""
    compiler = Path(__file__).parents[1]
    outside = {"cli", "quantize", "executor", "explore", "define", "rules", "llvm"}
    files = [Path(__file__)]
    for package in (dovetail.isa, dovetail.vta_sim):
        files += Path(str(package.__file__)).parent.rglob("*.py")
    files += (
        path
        for path in compiler.rglob("*.py")
        if not outside & set(path.relative_to(compiler).parts)
    )
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()
