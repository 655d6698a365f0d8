"""One proof from end to end: the property, what must be possible, and the bugs it must find."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from dovetail.isa.config import HardwareConfig
from tests.differential.configs import differential_config

from .bench import Bench
from .engine import ask, translate

__all__ = ["Proof", "Proved", "planted", "prove"]

DEFAULT_SOLVER = "yices"


@dataclass(frozen=True, slots=True)
class Proof:
    """A property of a module of the gateware.

    subject: the module, "head_queue".  bench: what is built, from the module, a configuration, and
    whether to add lemmas.  says: the property.  configs: names of configurations; bugs are planted
    with the first.  steps: length of the induction; 0 where nothing lasts for ``base`` cycles.
    base: steps from the start that are looked at.  cover: steps within which what must be possible
    is found.  bugs: texts of the module and what is put in their place.  found: steps within which
    each bug is to be found.  assumes: of the surroundings.  quick: part of the tests.
    """

    name: str
    subject: str
    bench: Callable[[ModuleType, HardwareConfig, bool], Bench]
    says: str
    configs: tuple[str, ...]
    bugs: tuple[tuple[str, str], ...]
    steps: int = 1
    base: int = 3
    cover: int = 12
    found: int = 15
    assumes: str = ""
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Proved:
    """Result of a proof with one configuration.  problems: empty if all is well."""

    proof: Proof
    config: str
    seconds: float
    problems: tuple[str, ...]


def planted(name: str, old: str, new: str) -> ModuleType:
    """The module ``name`` with one text, which it has exactly once, replaced."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{name} has {old!r} {source.count(old)} times; required once"
    module = ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    exec(compile(source.replace(old, new), spec.origin, "exec"), module.__dict__)
    return module


def prove(
    proof: Proof,
    config_name: str,
    folder: Path,
    solver: str = DEFAULT_SOLVER,
    bugs: int | None = None,
) -> Proved:
    """Prove it, cover it, and find its bugs, or the first ``bugs`` of them, with one configuration.

    folder: where files are written.
    """
    assert proof.base >= proof.steps, "an induction of so many steps stands on as many"
    begin = time.perf_counter()
    config = differential_config(config_name)
    name = f"dovetail.vta_hw.{proof.subject}"
    benches = {"proof": proof.bench(import_module(name), config, True)}
    to_find = proof.bugs[:bugs] if config_name == proof.configs[0] else ()
    for number, (old, new) in enumerate(to_find):
        benches[f"bug{number}"] = proof.bench(planted(name, old, new), config, False)
    translate(benches, folder)
    problems = []
    for way, steps in (("base", proof.base), ("step", proof.steps), ("cover", proof.cover)):
        if steps:
            answer = ask(folder, "proof", way, steps, solver)
            if not answer.holds:
                problems.append(f"{way} of {steps} steps: {answer.text or 'failed'}")
    for number, (old, new) in enumerate(to_find):
        answer = ask(folder, f"bug{number}", "base", proof.found, solver)
        if answer.holds:
            problems.append(f"with {new!r} for {old!r} nothing fails in {proof.found} steps")
    return Proved(proof, config_name, time.perf_counter() - begin, tuple(problems))


def say(line: str) -> None:
    """Print at once."""
    print(line, flush=True, file=sys.stdout)
