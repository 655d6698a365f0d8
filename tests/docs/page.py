"""Executes the code of a page.

    python page.py PAGE.md [--update]

Blocks run in their order, in the current folder: ``sh`` by bash, ``python`` by this interpreter,
all in one namespace, ``diff`` by git apply.  A ``text`` block is what the block before it prints;
"..." in it stands for anything.  The first difference ends with an error, or, with ``--update``,
what is printed is written into the page.
"""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "PageError", "blocks_of", "commands_of", "run_block", "run_page"]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class PageError(Exception):
    """A block that fails, or prints other than the page says."""


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


def commands_of(text: str) -> list[list[str]] | None:
    """Words of the commands of a block of ``dovetail ...`` lines; None if it needs a shell."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        words = list(_words(line))
        if words and words[0] != "dovetail":
            return None
        if any(set(word) <= set("|&;<>()") for word in words):
            return None
        if words:
            commands.append(words[1:])
    return commands


def _words(line: str) -> shlex.shlex:
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return words


def run_block(block: Block, page: Path, names: dict[str, object], apart: bool = False) -> str:
    """What the block prints; ``names`` is the namespace of Python.

    apart: whether ``dovetail`` is a process of its own, as it must be where sources change.
    Raises PageError when it fails.
    """
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        return printed.getvalue()
    here = commands_of(block.text) if block.language == "sh" and not apart else None
    if here is not None:
        return "".join(_dovetail(words, f"{page}:{block.line}") for words in here)
    commands = {
        "sh": ["bash", "-euo", "pipefail", "-c", block.text],
        "diff": ["git", "apply", "-"],
    }
    done = subprocess.run(
        commands[block.language], input=block.text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PageError(f"{page}:{block.line}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _dovetail(words: list[str], where: str) -> str:
    """What a command prints, run by this process."""
    from click.testing import CliRunner

    from dovetail.compiler.__main__ import main

    done = CliRunner().invoke(main, words, prog_name="dovetail")
    if done.exit_code:
        raise PageError(f"{where}: dovetail {shlex.join(words)}\n{done.output}{done.exception!r}")
    return done.stdout


def run_page(page: Path, update: bool = False) -> None:
    """Execute a page, and hold what it prints to what it says.  Raises PageError."""
    checker = doctest.OutputChecker()
    names: dict[str, object] = {"__name__": "__main__"}
    text, printed, blocks = page.read_text(encoding="utf-8"), "", blocks_of(page)
    apart = any(block.language == "diff" for block in blocks)
    for block in blocks:
        if block.language != "text":
            printed = run_block(block, page, names, apart)
        elif not checker.check_output(block.text, printed, FLAGS):
            if not update:
                raise PageError(f"{page}:{block.line}: it says\n{block.text}\nnot\n{printed}")
            text = text.replace(f"```text\n{block.text}```", f"```text\n{printed}```", 1)
    if text != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run_page(Path(sys.argv[1]), "--update" in sys.argv)
