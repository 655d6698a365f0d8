"""Facts about a file for ``dovetail inspect``: plain values, ready for JSON."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.runtime.module import Module
    from dovetail.runtime.parts import Part

__all__ = ["Facts", "model_facts", "module_facts"]

Facts = dict[str, Any]


def module_facts(path: Path) -> Facts:
    """Describe a module's file.  Raises ModuleError when it is none."""
    from dovetail.runtime.module import Module
    from dovetail.runtime.trust.origin import holds_code, is_own
    from dovetail.runtime.trust.signer import signer_of

    module = Module.load(path)
    signer = signer_of(path)
    return {
        "file": str(path),
        "kind": "module",
        "bytes": path.stat().st_size,
        "target": module.target,
        "inputs": [_tensor(each) for each in module.inputs],
        "outputs": [_tensor(each) for each in module.outputs],
        "parts": [_part(each) for each in module.parts],
        "operators": _counted(each.operator for each in module.placement),
        "macs_on_accelerator": _share(module),
        "signed_by": signer,
        "holds_machine_code": holds_code(module),
        "compiled_here": is_own(path),
    }


def model_facts(path: Path, target: str) -> Facts:
    """Describe a model's file, and what ``target`` would run of it.

    A model that the target takes nothing of has the reason as ``problem``.
    Raises ModelError when it is not a model, TargetError when there is no such target.
    """
    from dovetail.isa.errors import DovetailError

    from ..targets.table import find_target

    chosen, model = find_target(target), _opened(path)
    facts: Facts = {
        "file": str(path),
        "kind": "model",
        **DESCRIBED[type(model).__name__](model),
        "bytes": path.stat().st_size,
        "quantised": model.quantizes,
        "inputs": [_tensor(each) for each in model.inputs],
        "outputs": [_tensor(each) for each in model.outputs],
        "target": chosen.name,
        "parts": [],
        "macs_on_accelerator": None,
        "problem": None,
    }
    try:
        imported = chosen.load(model, {})
        plan = chosen.plan(imported) if imported else None
    except DovetailError as error:
        return {**facts, "problem": str(error)}
    if plan is None or chosen.name == "cpu":
        return facts
    macs = Counter[str]()
    for each in plan.placements:
        macs[each.where] += each.macs
    own = macs.total() - macs["cpu"]
    facts["parts"] = [{"target": chosen.name if each.own else "cpu"} for each in plan.pieces]
    facts["macs_on_accelerator"] = own / macs.total() if macs.total() else 1.0
    return facts


def _opened(path: Path) -> Any:
    from ..front.table import open_model

    return open_model(path)


def _onnx(model: Any) -> Facts:
    proto = model.proto
    return {
        "format": "ONNX",
        "opsets": {each.domain or "ai.onnx": each.version for each in proto.opset_import},
        "operators": _counted(node.op_type for node in proto.graph.node),
        "parameters": sum(_elements(each.dims) for each in proto.graph.initializer),
    }


def _tflite(model: Any) -> Facts:
    return {
        "format": "TensorFlow Lite",
        "opsets": {},
        "operators": _counted(each.kind for each in model.main.operations),
        "parameters": sum(map(_elements, model.constant_shapes)),
    }


def _torch(model: Any) -> Facts:
    return {
        "format": "PyTorch",
        "opsets": {},
        "operators": _counted(model.operators),
        "parameters": model.parameters,
    }


DESCRIBED = {"SourceModel": _onnx, "TfliteModel": _tflite, "TorchModel": _torch}
"""Facts that only one format has, by the class of its front end."""


def _tensor(tensor: Any) -> Facts:
    shape = [None if size in (None, -1) else size for size in tensor.shape]
    return {"name": tensor.name, "shape": shape, "dtype": tensor.dtype}


def _counted(kinds: Iterable[str]) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(Counter(kinds).items(), key=lambda each: (-each[1], each[0])))


def _elements(shape: Iterable[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _part(part: "Part") -> Facts:
    """Its sizes in bytes, and what is in it."""
    from dovetail.runtime.accelerator.part import AcceleratorPart
    from dovetail.runtime.manifest import Content, write_value
    from dovetail.runtime.native.part import CpuPart

    sections: list[Content] = []
    write_value(part, sections)
    facts: Facts = {"target": part.target, "bytes": sum(map(len, sections))}
    if isinstance(part, AcceleratorPart):
        config = part.configuration
        return facts | {
            "configuration": config.name,
            "fingerprint": f"{config.fingerprint:#010x}",
            "macs_per_cycle": config.macs_per_cycle,
            "layers": len(part.layers),
            "instructions": part.instruction_count,
            "program_bytes": part.program_bytes,
            "dram_bytes": len(part.dram),
            "macs": part.macs,
            "expected_cycles": part.expected_cycles,
        }
    if isinstance(part, CpuPart):
        return facts | {
            "cpu": part.cpu,
            "kernels": len(part.kernels),
            "constant_bytes": len(part.data),
            "memory_bytes": part.program.memory_bytes,
        }
    return facts | {"holds": "a model that is compiled as it runs"}


def _share(module: "Module") -> float | None:
    """The part of the model's MACs that an accelerator computes; None where nothing says."""
    asked = sum(each.macs for each in module.placement)
    if not asked:
        return None
    return 1 - sum(each.macs for each in module.placement if each.where == "cpu") / asked
