"""Bit layouts of instructions, derived from the formats of ``dovetail.isa``."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from dovetail.isa.formats import Format
from dovetail.isa.instructions import FORMATS

__all__ = ["GEMM", "LOAD", "STORE", "VECTOR", "struct_layout"]


def struct_layout(layout: Format) -> data.StructLayout:
    """The struct whose members are the fields of ``layout``, reserved bits excluded."""
    return data.StructLayout(
        {
            field.name: signed(field.width) if field.signed else unsigned(field.width)
            for field in layout.fields
        }
    )


LOAD, GEMM, VECTOR, STORE = (struct_layout(layout) for layout in FORMATS)
