"""Commands that show what is there: units, instructions, memories, tensors."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.memories import Memory
from dovetail.runtime.debug.session import InstructionInfo
from dovetail.runtime.debug.stops import MEMORIES, parse_space
from dovetail.runtime.errors import InputError

from ...debug.debugger import Debugger
from ..arrays import write_array
from ..output import table
from .answer import Answer, Command, Words, answer_place, number, slices

__all__ = ["LOOKING"]

LISTED = 9
MOST_VALUES = 4096
"""Values of an array in JSON."""


def _where(debugger: Debugger, words: Words) -> Answer:
    here = answer_place(debugger, debugger.where())
    units = [
        {
            "unit": each.unit.name,
            "working": list(each.working),
            "queue": list(each.queue),
            "waits_for": each.waits_for,
        }
        for each in debugger.units()
    ]
    tokens = {
        f"{giver.name}->{taker.name}": count
        for (giver, taker), count in debugger.tokens().items()
        if count
    }
    rows: list[tuple[object, ...]] = [
        (each["unit"], _numbers(each["working"]), _numbers(each["queue"]), each["waits_for"])
        for each in units
    ]
    shown = table(
        "Units", dict.fromkeys(("unit", "works on", "queue", "next one waits for"), "left"), rows
    )
    line = ", ".join(f"{pair} {count}" for pair, count in tokens.items())
    values = {**here.values, "units": units, "tokens": tokens}
    return Answer(values, (*here.shown, shown, f"tokens: {line or 'none'}"))


def _numbers(indices: object) -> str:
    assert isinstance(indices, list)
    return ", ".join(map(str, indices)) or "-"


def _registers(debugger: Debugger, words: Words) -> Answer:
    found = debugger.registers()
    return Answer(found, tuple(f"{name} {value}" for name, value in found.items()))


def _describe(info: InstructionInfo) -> dict[str, Any]:
    return {
        "instruction": info.index,
        "unit": info.unit.name,
        "layer": info.layer,
        "assembly": info.assembly,
        "queued": info.queued,
        "start": info.start,
        "end": info.end,
    }


def _info(debugger: Debugger, words: Words) -> Answer:
    if len(words) != 1:
        raise InputError("required the index of an instruction")
    info = debugger.instruction(number(words[0], "the index of an instruction"))
    line = (
        f"{info.index} in layer {info.layer!r}: queued in cycle {info.queued}, starts in "
        f"{info.start}, ends in {info.end}"
    )
    return Answer(_describe(info), (line, info.assembly))


def _list(debugger: Debugger, words: Words) -> Answer:
    place = debugger.where()
    here = place.next.index if place.next else len(debugger.program) - 1
    middle = number(words[0], "the index of an instruction") if words else here
    count = number(words[1], "how many") if len(words) > 1 else LISTED
    first = max(0, min(middle - count // 2, len(debugger.program) - count))
    infos = [
        debugger.instruction(i) for i in range(first, min(first + count, len(debugger.program)))
    ]
    rows: list[tuple[object, ...]] = [
        ("→" if i.index == here else "", i.index, i.start, i.end, i.assembly) for i in infos
    ]
    headings = {"": "", "index": "right", "start": "right", "end": "right", "assembly": ""}
    return Answer(
        {"instructions": [_describe(info) for info in infos]}, (table("Program", headings, rows),)
    )


def _layers(debugger: Debugger, words: Words) -> Answer:
    rows: list[tuple[object, ...]] = []
    for index, name in enumerate(debugger.layers):
        mine = [i for i, layer in enumerate(debugger.layer_of) if layer == index]
        infos = [debugger.instruction(i) for i in mine]
        rows.append(
            (
                index,
                name,
                len(mine),
                mine[0] if mine else "-",
                min((i.start for i in infos), default=-1),
                max((i.end for i in infos), default=-1),
            )
        )
    keys = ("layer", "name", "instructions", "first", "start", "end")
    headings = {key: "" if key == "name" else "right" for key in keys}
    values = [dict(zip(keys, row, strict=True)) for row in rows]
    return Answer({"layers": values}, (table("Layers", headings, rows),))


def _tensors(debugger: Debugger, words: Words) -> Answer:
    found = []
    for layout in debugger.record.tensors:
        view = debugger.tensor(layout.name)
        found.append(
            {
                "name": layout.name,
                "shape": list(layout.shape),
                "present": float(view.present.mean()),
                "act_words": len(view.words),
                "dram": layout.address,
            }
        )
    rows: list[tuple[object, ...]] = [
        (each["name"], each["shape"], f"{each['present']:.0%}", each["act_words"], each["dram"])
        for each in found
    ]
    headings = {
        "name": "",
        "NHWC": "",
        "present": "right",
        "words of act": "right",
        "dram": "right",
    }
    return Answer({"tensors": found}, (table("Tensors", headings, rows),))


def _array(array: NDArray[Any]) -> dict[str, Any]:
    """As JSON; values of large arrays are left out."""
    values = {"dtype": str(array.dtype), "shape": list(array.shape)}
    return {**values, "values": array.tolist()} if array.size <= MOST_VALUES else values


def _print(debugger: Debugger, words: Words) -> Answer:
    match words:
        case ["dram", address, *rest] if len(rest) <= 2:
            count = number(rest[0], "how many") if rest else debugger.config.block
            dtype = rest[1] if len(rest) > 1 else "int8"
            found = debugger.dram(number(address, "an address"), count, dtype)
            return Answer({"dram": _array(found)}, (str(found),))
        case [memory, address, *rest] if memory in MEMORIES and len(rest) <= 1:
            count = number(rest[0], "how many") if rest else 1
            words_ = debugger.words(MEMORIES[memory], number(address, "an address"), count)
            shown = tuple(f"{name}:\n{array}" for name, array in words_.arrays.items())
            return Answer({n: _array(a) for n, a in words_.arrays.items()}, shown)
        case [name, *rest] if len(rest) <= 2 and name not in (*MEMORIES, "dram"):
            return _tensor(debugger, name, rest)
        case _:
            raise InputError(
                f"{' '.join(words)!r}; required MEMORY ADDRESS [COUNT], "
                "dram ADDRESS [COUNT [TYPE]], or TENSOR [nchw|nhwc] [INDEX]"
            )


def _tensor(debugger: Debugger, name: str, rest: Words) -> Answer:
    view = debugger.tensor(name)
    layout = rest.pop(0) if rest and rest[0] in ("nchw", "nhwc") else "nchw"
    values = view.nchw if layout == "nchw" else view.values
    present = view.present
    if layout == "nchw" and present.ndim == 3:
        present = present.transpose(2, 0, 1)
    if rest:
        index = slices(rest[0])
        try:
            values, present = values[index], present[index]
        except IndexError as error:
            raise InputError(f"index {rest[0]} of {view.name!r}, {values.shape}: {error}") from None
    where = "dram" if view.in_dram else f"act, {len(view.words)} words"
    share = float(np.mean(present))
    found = np.asarray(values)
    line = f"{view.name} ({layout}), {share:.0%} of it is there now, in {where}"
    answer = {"tensor": view.name, "layout": layout, "present": share, "where": where}
    return Answer({**answer, **_array(found)}, (line, str(found)))


def _save(debugger: Debugger, words: Words) -> Answer:
    if len(words) != 2 or not words[1].endswith(".npy"):
        raise InputError(f"{' '.join(words)!r}; required TENSOR FILE.npy")
    view = debugger.tensor(words[0])
    write_array(Path(words[1]), view.values)
    return Answer({"written": words[1]}, (f"written: {words[1]}, {view.values.shape}",))


def _weights(debugger: Debugger, words: Words) -> Answer:
    if not 1 <= len(words) <= 2:
        raise InputError(f"{' '.join(words)!r}; required LAYER [weights|bias|taps|table|...]")
    found = debugger.constant(words[0], words[1] if len(words) > 1 else "weights")
    rows: list[tuple[object, ...]] = [
        (
            part.instruction,
            part.place,
            f"{part.address:#x}",
            f"{part.first_word} to {part.first_word + len(part.data) - 1}",
            f"{part.on_chip.mean():.0%}",
        )
        for part in found.parts
    ]
    headings = dict.fromkeys(("load", "part", "dram", found.memory.value, "there now"), "right")
    title = f"{found.name} in {found.memory.value}"
    keys = ("instruction", "place", "address", "words", "on_chip")
    parts = [dict(zip(keys, map(str, row), strict=True)) for row in rows]
    whole = found.values if found.shape is None else found.ohwi
    layout = "" if found.shape is None else "output channels, rows, columns, input channels:"
    return Answer(
        {"constant": found.name, "parts": parts, **_array(whole)},
        (table(title, headings, rows), layout, str(whole)),
    )


def _who(debugger: Debugger, words: Words) -> Answer:
    if len(words) != 2:
        raise InputError(f"{' '.join(words)!r}; required MEMORY ADDRESS")
    space = parse_space(words[0])
    found = debugger.writer(space, number(words[1], "an address"))
    info = found.instruction
    lines = [f"nobody has written {words[0]} {words[1]} yet"]
    if info:
        lines = [f"{words[0]} {words[1]} was written by instruction {info.index}", info.assembly]
    if found.tensor and found.element:
        block, row, column = found.element
        unit_ = "word" if space is Memory.ACT else "byte"
        lines.append(
            f"{unit_} of {found.tensor}: block {block}, row {row}, column {column}, halo included"
        )
    if found.loaded_from is not None:
        lines.append(f"loaded from dram {found.loaded_from:#x}")
    values = {
        "writer": _describe(info) if info else None,
        "tensor": found.tensor,
        "element": found.element,
        "loaded_from": found.loaded_from,
    }
    return Answer(values, tuple(lines))


LOOKING = {
    "where": Command("", "Cycle, units, queues, tokens, and what waits for what.", _where),
    "registers": Command("", "What the host would read.", _registers),
    "list": Command("[N [COUNT]]", "Instructions around N, or here.", _list),
    "info": Command("N", "One instruction and its cycles.", _info),
    "layers": Command("", "List the layers.", _layers),
    "tensors": Command("", "List the tensors, and how much of each is there now.", _tensors),
    "print": Command(
        "MEMORY ADDRESS [COUNT], dram ADDRESS [COUNT [TYPE]], or TENSOR [nchw|nhwc] [INDEX]",
        "Show words, bytes, or a tensor, wherever it is.",
        _print,
    ),
    "save": Command("TENSOR FILE.npy", "Write a tensor, in NHWC.", _save),
    "weights": Command("LAYER [NAME]", "Where a constant of a layer is, and its tiles.", _weights),
    "who": Command("MEMORY ADDRESS", "Who wrote a word (of dram: a byte) last.", _who),
}
