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

__all__ = ["Block", "PageError", "blocks_of", "commands_of", "pieces_of", "run_block", "run_page"]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"<<\s*'?(\w+)'?")
LASTING = re.compile(r"\s|\w+=|(cd|export|set|source|if|for|while|case|function)\b|[({]")
"""Beginnings of lines that matter to lines after them, or belong to lines before them."""
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
        if any(set(word) <= set("|&;<>()") or set(word) & set("$`*") for word in words):
            return None
        if words:
            commands.append(words[1:])
    return commands


def pieces_of(text: str) -> list[str]:
    """A block cut where lines of ``dovetail`` meet others; whole, where lines need each other."""
    pieces: list[tuple[bool, str]] = []
    lines = text.splitlines(keepends=True)
    while lines:
        line = lines.pop(0)
        while line.endswith("\\\n") and lines:
            line += lines.pop(0)
        if LASTING.match(line):
            return [text]
        inside = HERE_DOCUMENT.search(line)
        while inside and lines:
            line += lines.pop(0)
            if line.splitlines()[-1] == inside[1]:
                break
        own = commands_of(line) is not None
        if pieces and pieces[-1][0] == own:
            line = pieces.pop()[1] + line
        pieces.append((own, line))
    return [piece for _, piece in pieces]


def _words(line: str) -> shlex.shlex:
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return words


def run_block(block: Block, page: Path, names: dict[str, object], apart: bool = False) -> str:
    """The block's output; ``names`` is the namespace of Python.

    apart: whether ``dovetail`` is a process of its own, as it must be where sources change.
    Raises PageError when it fails.
    """
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        return printed.getvalue()
    where = f"{page}:{block.line}"
    if block.language == "diff":
        return _process(["git", "apply", "-"], block.text, where)
    printed = []
    for piece in [block.text] if apart else pieces_of(block.text):
        here = None if apart else commands_of(piece)
        if here is None:
            printed.append(_process(["bash", "-euo", "pipefail", "-c", piece], piece, where))
        else:
            printed += [_dovetail(words, where) for words in here]
    return "".join(printed)


def _process(command: list[str], text: str, where: str) -> str:
    """Output of a command that reads ``text``."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PageError(f"{where}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _dovetail(words: list[str], where: str) -> str:
    """Output of a command that this process runs."""
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
