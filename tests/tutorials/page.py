"""Executes a tutorial from its page.

    python page.py PAGE.md [--update]

Blocks of code run in their order, in the current folder: ``sh`` by bash, ``python`` by this
interpreter, all in one namespace, ``diff`` by git apply.  A ``text`` block is what the block before
it prints; "..." in it stands for anything.  The first difference ends with an error, or, with
``--update``, what is printed is written into the page.
"""

import contextlib
import doctest
import io
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks_of"]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A block of code: its language, its text, and the line of the page it begins in."""

    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """The page's blocks that have a language, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 2)
        for found in FENCE.finditer(text)
    ]


def run_block(block: Block, page: Path, names: dict[str, object]) -> str:
    """What the block prints; ``names`` is the namespace of Python."""
    if block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        return printed.getvalue()
    commands = {
        "sh": ["bash", "-euo", "pipefail", "-c", block.text],
        "diff": ["git", "apply", "-"],
    }
    done = subprocess.run(
        commands[block.language], input=block.text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{page}:{block.line}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Execute the page named on the command line."""
    page = Path(sys.argv[1])
    checker = doctest.OutputChecker()
    names: dict[str, object] = {"__name__": "__main__"}
    text, printed = page.read_text(encoding="utf-8"), ""
    for block in blocks_of(page):
        if block.language != "text":
            printed = run_block(block, page, names)
        elif not checker.check_output(block.text, printed, FLAGS):
            if "--update" not in sys.argv:
                raise SystemExit(f"{page}:{block.line}: it says\n{block.text}\nnot\n{printed}")
            text = text.replace(f"```text\n{block.text}```", f"```text\n{printed}```", 1)
    if text != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
