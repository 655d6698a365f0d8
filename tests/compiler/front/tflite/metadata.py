"""Metadata of TensorFlow Lite's files."""

import flatbuffers

__all__ = ["metadata"]


def metadata(mean: list[float], std: list[float]) -> bytes:
    """Metadata of the first input, written by the package of the underlying format."""
    b = flatbuffers.Builder(64)

    def floats(values: list[float]) -> int:
        b.StartVector(4, len(values), 4)
        for each in reversed(values):
            b.PrependFloat32(each)
        return int(b.EndVector())

    def listed(*tables: int) -> int:
        b.StartVector(4, len(tables), 4)
        for each in reversed(tables):
            b.PrependUOffsetTRelative(each)
        return int(b.EndVector())

    def table(fields: int, **offsets: int) -> int:
        b.StartObject(fields)
        for place, offset in offsets.items():
            b.PrependUOffsetTRelativeSlot(int(place[1:]), offset, 0)
        return int(b.EndObject())

    options = table(2, f0=floats(mean), f1=floats(std))
    b.StartObject(2)
    b.PrependUint8Slot(0, 1, 0)
    b.PrependUOffsetTRelativeSlot(1, options, 0)
    unit = int(b.EndObject())
    tensor = table(7, f4=listed(unit))
    subgraph = table(7, f2=listed(tensor))
    b.Finish(table(8, f3=listed(subgraph)), file_identifier=b"M001")
    return bytes(b.Output())
