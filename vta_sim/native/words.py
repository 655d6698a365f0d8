"""LLVM code for words of the accelerator: lanes, weight tiles and their product."""

from typing import Any

import llvmlite.ir as ir

from .kinds import BYTE, INT, Scalar, Value, intrinsic

__all__ = ["Words"]

I32 = ir.IntType(32)
UNSIGNED_OFFSET = 0x80
UNSIGNED_OFFSET_LOG2 = 7
VNNI_BITS = 512


class Words:
    """Types and operations for a core of ``lanes`` lanes.

    vnni: whether the processor multiplies four uint8 by int8 for each lane in one instruction
    (AVX-512 VNNI). Then an input is made unsigned by adding 128, and 128 times the sum of the
    weights is taken away again. Both ways are exact.
    """

    def __init__(self, lanes: int, *, vnni: bool) -> None:
        self.lanes, self.vnni = lanes, vnni
        self.ints = ir.VectorType(I32, lanes)
        self.floats = ir.VectorType(ir.FloatType(), lanes)
        self.bytes = ir.VectorType(BYTE, lanes)
        part = ir.VectorType(BYTE, 4 * lanes) if vnni else self.bytes
        parts = lanes // 4 if vnni else lanes
        self.tile = ir.LiteralStructType([part] * parts + [self.ints])

    def splat(self, b: ir.IRBuilder, scalar: Any, vector: ir.VectorType) -> Any:
        """``scalar`` in every element of ``vector``."""
        first = b.insert_element(ir.Constant(vector, ir.Undefined), scalar, I32(0))
        mask = ir.Constant(ir.VectorType(I32, vector.count), [0] * vector.count)
        return b.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)

    def from_int(self, b: ir.IRBuilder, value: Any) -> Any:
        return self.splat(b, b.trunc(value, I32), self.ints)

    def _place(self, b: ir.IRBuilder, memory: Value, index: Any, vector: ir.VectorType) -> Any:
        return b.gep(memory.ir, [index], source_etype=vector)

    def load_word(self, b: ir.IRBuilder, memory: Value, index: Value) -> Value:
        narrow = getattr(memory.kind, "element", "") == "int8"
        vector = self.bytes if narrow else self.ints
        place = self._place(b, memory, index.ir, vector)
        word = b.load(place, typ=vector, align=1 if narrow else 4)
        return Value(Scalar.LANES, b.sext(word, self.ints) if narrow else word)

    def store_word(self, b: ir.IRBuilder, memory: Value, index: Value, word: Value) -> Value:
        narrow = getattr(memory.kind, "element", "") == "int8"
        vector = self.bytes if narrow else self.ints
        cut = b.trunc(word.ir, vector) if narrow else word.ir
        b.store(cut, self._place(b, memory, index.ir, vector), align=1 if narrow else 4)
        return Value(Scalar.NOTHING, None)

    def sum_word(self, b: ir.IRBuilder, memory: Value, index: Value) -> Value:
        name = f"llvm.vector.reduce.add.v{self.lanes}i32"
        word = self.load_word(b, memory, index).ir
        total = b.call(intrinsic(b.module, name, I32, self.ints), [word])
        return Value(Scalar.INT, b.sext(total, INT))

    def make_splat(self, b: ir.IRBuilder, value: Value) -> Value:
        return Value(Scalar.LANES, self.from_int(b, value.ir))

    def smallest(self, b: ir.IRBuilder, left: Value, right: Value) -> Value:
        less = b.icmp_signed("<", left.ir, right.ir)
        return Value(Scalar.LANES, b.select(less, left.ir, right.ir))

    def largest(self, b: ir.IRBuilder, left: Value, right: Value) -> Value:
        more = b.icmp_signed(">", left.ir, right.ir)
        return Value(Scalar.LANES, b.select(more, left.ir, right.ir))

    def multiply_round_clip(
        self, b: ir.IRBuilder, value: Value, scale: Value, index: Value, low: Value, high: Value
    ) -> Value:
        place = self._place(b, scale, index.ir, self.floats)
        factor = b.load(place, typ=self.floats, align=4)
        product = b.fmul(b.sitofp(value.ir, self.floats), factor)
        rint = intrinsic(b.module, f"llvm.rint.v{self.lanes}f32", self.floats, self.floats)
        rounded = b.call(rint, [product])
        for limit, order in ((low, "<"), (high, ">")):
            bound = self.splat(b, b.sitofp(limit.ir, ir.FloatType()), self.floats)
            rounded = b.select(b.fcmp_ordered(order, rounded, bound), bound, rounded)
        return Value(Scalar.LANES, b.fptosi(rounded, self.ints))

    def multiply_fixed(
        self,
        b: ir.IRBuilder,
        value: Value,
        multiplier: Value,
        power: Value,
        low: Value,
        high: Value,
    ) -> Value:
        wide = ir.VectorType(INT, self.lanes)

        def constant(number: int) -> Any:
            return ir.Constant(wide, [number] * self.lanes)

        def least(left: Any, right: Any) -> Any:
            return b.select(b.icmp_signed("<", left, right), left, right)

        def most(left: Any, right: Any) -> Any:
            return b.select(b.icmp_signed(">", left, right), left, right)

        zero, total, shift = constant(0), b.sext(value.ir, wide), b.sext(power.ir, wide)
        negative = b.icmp_signed("<", total, zero)
        magnitude = b.shl(most(total, b.sub(zero, total)), most(shift, zero))
        factor = b.and_(b.zext(multiplier.ir, wide), constant(0x7FFFFFFF))
        product = b.mul(least(magnitude, constant((1 << 24) - 1)), factor)
        # Half up: of a negative product the magnitude's half goes down.
        product = b.add(product, b.select(negative, constant((1 << 30) - 1), constant(1 << 30)))
        product = b.lshr(product, constant(31))
        right = most(b.sub(zero, shift), zero)
        half = b.lshr(b.shl(constant(1), right), constant(1))
        rounded = b.lshr(b.add(product, half), right)
        result = b.select(negative, b.sub(zero, rounded), rounded)
        limits = (self.splat(b, limit.ir, wide) for limit in (low, high))
        bottom, top = limits
        return Value(Scalar.LANES, b.trunc(least(most(result, bottom), top), self.ints))

    def look_up(self, b: ir.IRBuilder, table: Value, word: Value, index: Value) -> Value:
        result = ir.Constant(self.ints, ir.Undefined)
        for lane in range(self.lanes):
            row = b.add(word.ir, b.sext(b.extract_element(index.ir, I32(lane)), INT))
            place = b.add(b.mul(row, INT(self.lanes)), INT(lane))
            entry = b.load(b.gep(table.ir, [place], source_etype=BYTE), typ=BYTE)
            result = b.insert_element(result, b.sext(entry, I32), I32(lane))
        return Value(Scalar.LANES, result)

    # The matrix core --------------------------------------------------------------------------

    def load_tile(self, b: ir.IRBuilder, memory: Value, index: Value) -> Value:
        """The tile in parts, as ``dot`` needs them, and what is to be added to a product."""
        lanes = self.lanes
        element, group = (I32, 4) if self.vnni else (BYTE, 1)
        per_row = lanes // group
        chunk = ir.VectorType(element, lanes)
        start = b.mul(index.ir, INT(per_row))
        chunks = [
            b.load(b.gep(memory.ir, [b.add(start, INT(k))], source_etype=chunk), typ=chunk, align=1)
            for k in range(per_row)
        ]
        tile: Any = ir.Constant(self.tile, ir.Undefined)
        total: Any = ir.Constant(self.ints, None)
        for part in range(per_row):
            weights = b.bitcast(self._column(b, chunks, part), self.tile.elements[part])
            tile = b.insert_value(tile, weights, part)
            if self.vnni:
                offset = ir.Constant(weights.type, [UNSIGNED_OFFSET] * (4 * lanes))
                total = self._dot_four(b, total, offset, weights)
        correction = b.sub(ir.Constant(self.ints, None), total)
        return Value(Scalar.TILE, b.insert_value(tile, correction, per_row))

    def _column(self, b: ir.IRBuilder, chunks: list[Any], column: int) -> Any:
        """Element ``column`` of every row; the rows follow one another through ``chunks``."""
        per_row = len(chunks)
        picks = [place for place in range(self.lanes) if place % per_row == column]
        return self._join(b, [self._select(b, chunk, chunk, picks) for chunk in chunks])

    def _select(self, b: ir.IRBuilder, left: Any, right: Any, order: list[int]) -> Any:
        """Elements of two vectors of one length, taken one after the other."""
        return b.shuffle_vector(left, right, ir.Constant(ir.VectorType(I32, len(order)), order))

    def dot(self, b: ir.IRBuilder, tile: Value, memory: Value, index: Value) -> Value:
        parts = len(self.tile.elements) - 1
        total = b.extract_value(tile.ir, parts)
        element = ir.VectorType(I32 if self.vnni else BYTE, parts)
        word = b.load(self._place(b, memory, index.ir, element), typ=element, align=1)
        if self.vnni:
            word = b.xor(word, ir.Constant(element, [0x01010101 * UNSIGNED_OFFSET] * parts))
        for part in range(parts):
            weights = b.extract_value(tile.ir, part)
            inputs = self._select(b, word, word, [part] * self.lanes)
            if self.vnni:
                total = self._dot_four(b, total, b.bitcast(inputs, weights.type), weights)
            else:
                product = b.mul(b.sext(weights, self.ints), b.sext(inputs, self.ints))
                total = b.add(total, product)
        return Value(Scalar.LANES, total)

    def sum_rows(self, b: ir.IRBuilder, tile: Value) -> Value:
        """With VNNI by what is taken from products, 128 times as much."""
        parts = len(self.tile.elements) - 1
        total: Any = b.extract_value(tile.ir, parts)
        if self.vnni:
            shift = ir.Constant(self.ints, [UNSIGNED_OFFSET_LOG2] * self.lanes)
            return Value(Scalar.LANES, b.ashr(b.sub(ir.Constant(self.ints, None), total), shift))
        for part in range(parts):
            total = b.add(total, b.sext(b.extract_value(tile.ir, part), self.ints))
        return Value(Scalar.LANES, total)

    def _dot_four(self, b: ir.IRBuilder, total: Any, inputs: Any, weights: Any) -> Any:
        """``total`` plus four products, uint8 by int8, in each lane."""
        bits = min(32 * self.lanes, VNNI_BITS)
        step = bits // 32
        narrow, bytes_ = ir.VectorType(I32, step), ir.VectorType(BYTE, 4 * step)
        name = f"llvm.x86.avx512.vpdpbusd.{bits}"
        call = intrinsic(b.module, name, narrow, narrow, bytes_, bytes_)
        pieces = [
            b.call(
                call,
                [
                    self._slice(b, total, start, step),
                    self._slice(b, inputs, 4 * start, 4 * step),
                    self._slice(b, weights, 4 * start, 4 * step),
                ],
            )
            for start in range(0, self.lanes, step)
        ]
        return self._join(b, pieces)

    def _join(self, b: ir.IRBuilder, pieces: list[Any]) -> Any:
        """Vectors of one length, a power of two of them, after one another."""
        while len(pieces) > 1:
            both = list(range(2 * pieces[0].type.count))
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self._select(b, left, right, both) for left, right in pairs]
        return pieces[0]

    def _slice(self, b: ir.IRBuilder, vector: Any, start: int, count: int) -> Any:
        return self._select(b, vector, vector, list(range(start, start + count)))
