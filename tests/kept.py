"""Texts that tests keep in JSON files beside them: what the compiler chooses where any choice is
right, and what reports look like.

A change that is meant is written down by ``make kept``; the difference shows it.
"""

import json
import os
from pathlib import Path

__all__ = ["check_kept"]


def check_kept(path: Path, name: str, found: str | list[str]) -> None:
    """Fail if ``found``, a text or its lines, is not what ``path`` keeps under ``name``.

    With KEEP in the environment, keep it.
    """
    kept = json.loads(path.read_text()) if path.exists() else {}
    if "KEEP" in os.environ:
        kept[name] = found
        path.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n")
    assert kept.get(name) == found, "another choice; if it is meant, `make kept` keeps it"
