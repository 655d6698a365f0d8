"""Converters that other packages bring: found, not there, or no functions."""

import pytest

from dovetail.compiler.front.onnx import outside
from dovetail.compiler.front.onnx.outside import converter_outside
from dovetail.isa.entry_points import ExtensionError


def test_a_converter_is_a_function_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[str, str]]()
    known = {"own.Good": (len, "package:len"), "own.Bad": (3, "package:three")}

    def find(group: str, name: str) -> tuple[object, str] | None:
        asked.append((group, name))
        return known.get(name)

    monkeypatch.setattr(outside, "find_outside", find)
    assert converter_outside("own.Good") is len
    assert converter_outside("own.None") is None
    with pytest.raises(ExtensionError, match=r"dovetail\.onnx 'own\.Bad': package:three is a int;"):
        converter_outside("own.Bad")
    assert asked[0] == ("dovetail.onnx", "own.Good")
