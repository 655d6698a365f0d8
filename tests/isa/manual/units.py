"""Effect of an instruction of each unit on the memories: the loops under "Instructions"."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from .decode import Instruction, word_bytes
from .memories import Memories
from .requantize import over_root, quotient, requantize, requantize_fixed

Lanes = NDArray[np.int64]


def signed(value: Lanes, bits: int) -> Lanes:
    """The low ``bits`` of ``value`` as a two's complement number."""
    half = 1 << bits - 1
    return (value + half) % (1 << bits) - half


def load(it: Instruction, memories: Memories) -> None:
    """Copy words of DRAM, or windows of its rows, into a padded block."""
    block = memories.config["block"]
    size = word_bytes(it["memory"], block)
    target = memories.raw[it["memory"]]
    head = max(memories.config["bus_bytes"], block // 2)
    stepped = it["step"] > 0
    rows = it["pad_y_before"] + it["count_y"] + it["pad_y_after"]
    columns = it["pad_x_before"] + it["count_x"] + it["pad_x_after"]
    advance = it["step"] if stepped else size
    if it["nibbles"]:
        bus = memories.config["bus_bytes"]
        parameters = max(bus, 8) if it["gap"] else 4 * block
        advance = {1: head + size // 2, 3: parameters, 5: bus // 4}[it["memory"]]
    for z, row, column in product(range(it["count_z"]), range(rows), range(columns)):
        y, x = row - it["pad_y_before"], column - it["pad_x_before"]
        cell = it["sram_address"] + z * it["sram_stride_z"] + row * it["sram_stride_y"]
        cell += x * (1 + it["gap"]) if stepped else column
        word = np.full(size, it["pad_value"], np.int8).view(np.uint8)
        if 0 <= y < it["count_y"] and 0 <= x < it["count_x"]:
            start = it["dram_address"] + z * it["dram_stride_z"] + y * it["dram_stride_y"]
            read = memories.read_dram(start + x * advance, advance if it["nibbles"] else size)
            if it["nibbles"] and it["memory"] == 1:
                read = _weights(read, head, block)
            elif it["nibbles"] and it["memory"] == 3 and it["gap"]:
                read = np.concatenate([np.resize(read[at : at + 4], 4 * block) for at in (0, 4)])
            elif it["nibbles"] and it["memory"] == 3:
                read = np.concatenate([np.zeros(4 * block, np.uint8), read])
            elif it["nibbles"]:
                read = read[np.arange(block) % len(read)]
            place = x * advance + np.arange(size)
            inside = (it["row_first"] <= place) & (place < it["row_end"])
            word = np.where(inside, read, word) if stepped else read
        target[cell % len(target)] = word


def _weights(read: NDArray[np.uint8], head: int, block: int) -> NDArray[np.uint8]:
    """A word of WGT from its multipliers and nibbles."""
    word = np.zeros(block * block, np.int8)
    for n in range(block * block):
        lane = n // block
        multiplier = int(read[lane // 2]) >> 4 * (lane % 2) & 15
        word[n] = int(signed(np.int64(read[head + n // 2] >> 4 * (n % 2)), 4)) * (1 + multiplier)
    return word.view(np.uint8)


def store(it: Instruction, memories: Memories) -> None:
    """Copy words of ACT to DRAM."""
    size = memories.config["block"]
    act = memories.raw[0]
    for z, y, x in product(range(it["count_z"]), range(it["count_y"]), range(it["count_x"])):
        place = it["dram_address"] + z * it["dram_stride_z"] + y * it["dram_stride_y"] + x * size
        cell = it["sram_address"] + z * it["sram_stride_z"] + y * it["sram_stride_y"] + x
        memories.write_dram(place, act[cell % len(act)])


def indices(extents: list[int]) -> Lanes:
    """All indices of a nest, int64[iterations, level], level 0 fastest."""
    return np.indices(extents[::-1]).reshape(len(extents), -1).T[:, ::-1].astype(np.int64)


def gemm(it: Instruction, memories: Memories) -> None:
    """Multiply tiles and add them up in ACC, one iteration after the other."""
    act, wgt, acc = memories.act, memories.wgt, memories.acc
    at = indices(it.levels("extent"))
    a = (it["act_address"] + at @ it.levels("act_stride")) % len(act)
    w = (it["wgt_address"] + at @ it.levels("wgt_stride")) % len(wgt)
    o = (it["acc_address"] + at @ it.levels("acc_stride")) % len(acc)
    reduced = [level for level in range(6) if it["reduction"] >> level & 1]
    first = (at[:, reduced] == 0).all(axis=1) & (not it["accumulate"])
    for start in range(0, len(at), 4096):
        part = slice(start, start + 4096)
        weights = wgt[w[part]].astype(np.int64) + it["weight_offset"]
        inputs = act[a[part]].astype(np.int64) - it["act_zero_point"]
        sums = np.einsum("nlk,nk->nl", weights, inputs)
        for place, fresh, each in zip(o[part], first[part], sums, strict=True):
            acc[place] = signed(each + (0 if fresh else acc[place]), 32)


def vector(it: Instruction, memories: Memories) -> None:
    """Fold, finish and write; every word is read before one is written."""
    source = memories.acc if it["source"] else memories.act
    destination = memories.acc if it["destination"] else memories.act
    levels = it["reduction_levels"]
    extents = it.levels("extent")
    outer = indices(extents[levels:] or [1])
    inner = indices(extents[:levels])
    at = np.zeros((len(outer), len(inner), 5), np.int64)
    at[..., :levels] = inner
    at[..., levels:] = outer[:, None, : 5 - levels]
    address = it["source_address"] + at @ it.levels("source_stride")
    aside = at @ it.levels("tap_stride")
    fold = ("ADD", "SUB", "MAX", "MIN", "MAC")[it["fold"]]
    if fold == "MAC" and it["multiplier"] == 2:
        odd = at[..., 0] % 2 == 1
        other = it["source_address"] + it.levels("source_stride")[0] + aside
        address = np.where(odd, other, address)
    elements = source[address % len(source)].astype(np.int64)
    match fold:
        case "ADD":
            v = elements.sum(axis=1)
        case "SUB":
            v = elements[:, 0] - elements[:, 1:].sum(axis=1)
        case "MAX":
            v = elements.max(axis=1)
        case "MIN":
            v = elements.min(axis=1)
        case _:
            v = _mac(it, memories, at, elements, aside)
    par = it["par_address"] + at[:, 0] @ _upper(it, "par")
    cells = it["destination_address"] + at[:, 0] @ _upper(it, "destination")
    written = np.full(len(cells), True)
    if fold == "MAC" and it["multiplier"] == 3 and levels < 5:
        written = outer[:, 0] >= it["window_skip"]
    elif fold == "MAC" and it["multiplier"] == 3:
        written = np.arange(len(cells)) >= it["window_skip"]
    if it["row"]:
        _parameters(it, memories, signed(v, 32)[written], cells[written], par[written])
        return
    r = _finish(it, memories, signed(v, 32), par)
    for cell, each in zip(cells[written] % len(destination), r[written], strict=True):
        destination[cell] = each


def _parameters(
    it: Instruction, memories: Memories, v: Lanes, cells: Lanes, par_address: Lanes
) -> None:
    """Bias and scale of rows, for all lanes alike."""
    cells, par = cells % len(memories.bias), par_address % len(memories.bias)
    m1, s = np.full(len(v), it["m1"]), v.sum(axis=1)
    bias, scale = memories.bias[par, 0].astype(np.int64), memories.scale[par, 0] % (1 << 31)
    match it["row"]:
        case 1 if it["fold"] == 2:
            made = m1 - signed(v, 8).max(axis=1), np.full(len(v), 127 << 23)
        case 1:
            made = m1 - s, scale
        case 2:
            made = m1, quotient(scale, np.maximum(1, signed(s + bias, 32)))
        case _:
            made = bias, over_root(scale, np.maximum(1, signed(s + m1, 32)), it["shift"])
    memories.bias[cells] = signed(made[0], 32)[:, None]
    memories.scale[cells] = made[1][:, None]


def _upper(it: Instruction, name: str) -> list[int]:
    """The strides of a stream that moves with the levels that are not folded only."""
    strides = it.levels(f"{name}_stride")
    return [0 if level < it["reduction_levels"] else each for level, each in enumerate(strides)]


def _mac(it: Instruction, memories: Memories, at: Lanes, elements: Lanes, aside: Lanes) -> Lanes:
    """The sums of products of each result: int64[results, B]."""
    m0, m1 = it["m0"], it["m1"]
    offset0, offset1 = (int(signed(np.int64(m), 9)) for m in (m0, m0 if it["row"] else m1))
    tap = memories.tap
    match it["multiplier"]:
        case 0:
            taps = tap[(it["tap_address"] + aside) % len(tap)].astype(np.int64) + offset0
            raised = 0
            if memories.config["short_constants"] and not it["row"]:
                raised = int(signed(np.int64(m1), 9))
            return (signed(elements + raised, 16) * taps).sum(axis=1)
        case 1:
            immediate = np.where(at[..., 0] == 0, m0, m1)[..., None]
            return (signed(elements, 16) * immediate).sum(axis=1)
        case 2:
            odd = at[0, :, 0] % 2 == 1
            before = np.roll(elements, 1, axis=1)[:, odd]
            factors = signed(elements[:, odd] + offset1, 16), signed(before + offset0, 24)
            return (factors[0] * factors[1]).sum(axis=1)
        case _:
            return _windows(it, memories, at, elements, aside, offset0)


def _windows(
    it: Instruction, memories: Memories, at: Lanes, elements: Lanes, aside: Lanes, offset: int
) -> Lanes:
    """Three taps an element, and the sums of the two columns before."""
    tap = memories.tap
    t = (it["tap_address"] + aside) // 4 * 4
    folded = min(it["reduction_levels"], 1 + it["wide_window"])
    high = int(np.prod(it.levels("extent")[:folded]))
    wide = elements.shape[0], -1, high, elements.shape[2]
    columns = [
        (signed(elements, 8) * (tap[(t + j) % len(tap)].astype(np.int64) + offset))
        .reshape(wide)
        .sum(axis=2)
        for j in range(3)
    ]
    levels = it["reduction_levels"]
    results = []
    for number in range(len(at)):
        if levels == 5 or at[number, 0, levels] == 0:
            before = [np.zeros((3, elements.shape[2]), np.int64)] * 2
        for column in range(columns[0].shape[1]):
            c = np.stack([each[number, column] for each in columns])
            v = c[2] + before[0][1] + before[1][0]
            before = [c, before[0]]
        results.append(v)
    return np.stack(results)


def _finish(it: Instruction, memories: Memories, v: Lanes, par_address: Lanes) -> Lanes:
    low, high = it["low"], it["high"]
    match it["finish"]:
        case 1:
            par = par_address % len(memories.raw[3])
            bias = memories.bias[par].astype(np.int64)
            zero = it["zero_point"]
            if it["rounding"] == 2:
                low, high = zero - (1 << 19), zero + (1 << 19)
            meaning = requantize_fixed if it["rounding"] == 1 else requantize
            v = meaning(v, bias, memories.scale[par], zero, low, high)
        case 2:
            v = (v + (1 << it["shift"] >> 1)) >> it["shift"]
        case _:
            pass
    if it["destination"] == 0:
        v = np.clip(v, low, high)
    if it["lookup"]:
        tab = memories.tab
        lane = np.arange(v.shape[1])
        v = tab[(it["tab_address"] + 128 + v) % len(tab), lane].astype(np.int64)
    return v
