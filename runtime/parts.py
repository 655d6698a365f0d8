"""Modules of several parts, some on the accelerator and some on the CPU."""

from dataclasses import dataclass, replace

from .errors import ModuleError
from .module import Module, TensorSignature
from .result import RunResult

__all__ = ["PartModule", "accelerator_part", "join_parts", "merge_results", "parts_of"]


@dataclass(frozen=True, slots=True)
class PartModule:
    """A part and where it runs."""

    module: Module
    on_accelerator: bool


def join_parts(
    parts: list[PartModule],
    inputs: tuple[TensorSignature, ...],
    outputs: tuple[TensorSignature, ...],
    placement: list[dict[str, str]],
) -> Module:
    """One module of ``parts``, which run in order; exactly one of them on the accelerator.

    placement: node, operator, where and reason, of each node of the model.
    """
    (accelerator,) = (part.module for part in parts if part.on_accelerator)
    kept = ("config", "fingerprint", "layers", "program_bytes")
    details = {name: accelerator.details[name] for name in kept}
    details["parts"] = [
        {"section": f"part{number}", "on_accelerator": part.on_accelerator}
        for number, part in enumerate(parts)
    ]
    details["placement"] = placement
    sections = {f"part{number}": part.module.to_bytes() for number, part in enumerate(parts)}
    return Module(accelerator.target, inputs, outputs, details, sections)


def parts_of(module: Module) -> tuple[PartModule, ...]:
    """The parts in the order they run; the module itself when it has none.

    Raises ModuleError when one cannot be read.
    """
    if "parts" not in module.details:
        return (PartModule(module, module.target != "cpu"),)
    try:
        return tuple(
            PartModule(
                Module.from_bytes(module.sections[each["section"]], f"part {each['section']!r}"),
                bool(each["on_accelerator"]),
            )
            for each in module.details["parts"]
        )
    except (KeyError, TypeError) as error:
        raise ModuleError(f"the module's parts cannot be read: {error}; compile it again") from None


def accelerator_part(module: Module) -> Module:
    """The part that runs on the accelerator, or the module itself."""
    return next((part.module for part in parts_of(module) if part.on_accelerator), module)


def merge_results(
    results: list[tuple[PartModule, RunResult]], module: Module, wall_seconds: float
) -> RunResult:
    """What running all parts gave: the accelerator's figures, and the time of the rest as the
    host's.
    """
    values = {name: array for _, result in results for name, array in result.outputs.items()}
    main = next(result for part, result in results if part.on_accelerator)
    others = sum(result.wall_seconds for part, result in results if not part.on_accelerator)
    return replace(
        main,
        outputs={tensor.name: values[tensor.name] for tensor in module.outputs},
        wall_seconds=wall_seconds,
        host_seconds=main.host_seconds + others,
    )
