"""A folder that a browser runs a model from: WGSL, weights, a manifest, a page."""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from dovetail.runtime.files import write_whole
from dovetail.runtime.gpu.arena import Arena, grid_of
from dovetail.runtime.gpu.part import GpuPart, Launch, Place, Repeat
from dovetail.runtime.tensors import TensorSignature

__all__ = ["FILES", "METAL_FILES", "write_folder", "write_metal"]

FORMAT = 1
OWN = ("index.html", "dovetail.js", "page.js", "page.css")
FILES = ("model.wgsl", "weights.bin", "manifest.json", *OWN)
"""Names of the files in the folder."""
METAL_FILES = ("model.metal", "weights.bin", "manifest.json")
"""Names of the files for Metal."""


def write_folder(part: GpuPart, folder: Path, title: str) -> None:
    """Write the files of ``FILES``.

    part: compiled for ``webgpu``.  title: of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "model.wgsl", bytes(part.source))
    write_whole(folder / "weights.bin", bytes(part.data))
    manifest = json.dumps(_manifest(part, title), separators=(",", ":"))
    write_whole(folder / "manifest.json", manifest.encode())
    for name in OWN:
        text = (files(__package__) / "web" / name).read_text(encoding="utf-8")
        write_whole(folder / name, text.replace("{{TITLE}}", escape(title)).encode())


def write_metal(part: GpuPart, folder: Path, title: str) -> None:
    """Write the files of ``METAL_FILES``; part: compiled for ``metal``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "model.metal", bytes(part.source))
    write_whole(folder / "weights.bin", bytes(part.data))
    kernels = [
        {"name": each.name, "blocks": each.blocks, "threads": each.threads} for each in part.kernels
    ]
    text = json.dumps({**_manifest(part, title), "kernels": kernels}, indent=1)
    write_whole(folder / "manifest.json", text.encode())


def _manifest(part: GpuPart, title: str) -> dict[str, Any]:
    """The manifest for ``dovetail.js``; places are bytes in one memory."""
    arena = Arena.of(part)
    return {
        "format": FORMAT,
        "title": title,
        "bytes": arena.bytes,
        "weights": arena.data,
        "inputs": [_tensor(*each) for each in zip(part.inputs, arena.inputs, strict=True)],
        "outputs": [_tensor(*each) for each in zip(part.outputs, arena.outputs, strict=True)],
        "kernels": [{"name": each.name, "grid": grid_of(each.blocks)} for each in part.kernels],
        "steps": [_step(part, arena, each) for each in part.steps],
        "most_work": part.most_work,
    }


def _tensor(signature: TensorSignature, at: int) -> dict[str, Any]:
    shape = list(signature.shape)
    return {"name": signature.name, "shape": shape, "dtype": signature.dtype, "at": at}


def _step(part: GpuPart, arena: Arena, step: Launch | Repeat) -> dict[str, Any]:
    if isinstance(step, Launch):
        return {
            "kernel": step.kernel,
            "places": [_place(part, arena, each) for each in step.places],
        }
    given = {
        name: _place(part, arena, place)
        for name in ("counter", "condition", "done", "guard")
        if (place := getattr(step, name)) is not None
    }
    return {
        "count": step.count,
        "body": step.body,
        "last": step.last,
        "work": step.work,
        "node": step.origin,
        **given,
    }


def _place(part: GpuPart, arena: Arena, place: Place) -> dict[str, Any]:
    strides = [each._asdict() for each in place.strides]
    return {"at": arena.offset(part, place), **({"strides": strides} if strides else {})}
