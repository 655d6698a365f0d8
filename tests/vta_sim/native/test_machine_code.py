"""Machine code of the simulator on disk: never run when damaged."""

from pathlib import Path

import pytest

from dovetail.vta_sim.native.machine_code import build

from . import samples


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_damaged_code_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    assert build([samples.divide]).call(samples.divide, -7, 2) == -3999
    (entry,) = (tmp_path / "native").iterdir()
    whole = entry.read_bytes()
    flipped = bytes(byte ^ 0x55 for byte in whole)
    entry.write_bytes({"cut": whole[: len(whole) // 2], "flipped": flipped, "empty": b""}[damage])
    assert build([samples.divide]).call(samples.divide, -7, 2) == -3999
    assert entry.read_bytes() == whole
