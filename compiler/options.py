"""What the user may ask of the compiler beside model and target."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CompileOptions"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """dump: folder that gets the text of every intermediate form; None for none."""

    dump: Path | None = None

    @classmethod
    def from_environment(cls) -> "CompileOptions":
        """``DOVETAIL_DUMP`` names the dump folder."""
        folder = os.environ.get("DOVETAIL_DUMP")
        return cls(dump=Path(folder) if folder else None)

    def write(self, name: str, text: str) -> None:
        """Dump ``text`` as file ``name``."""
        if self.dump is not None:
            self.dump.mkdir(parents=True, exist_ok=True)
            (self.dump / name).write_text(text + "\n")
