"""The page of the commands, written from what Click knows of them."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from dovetail.compiler.__main__ import main

__all__ = ["commands_page"]

HEAD = """# Commands

What `dovetail --help` says, on one page: written from the program itself.
Every command ends with 0, with 1 and one line for an error, and with 2 for words it does not know.
"""


def commands_page() -> str:
    """The page: each command and each part of a group, with usage, options and what they mean."""
    context = click.Context(main, info_name="dovetail")
    return HEAD + "".join(_sections(main, context))


def _sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield from _section(command, inner)
        if isinstance(command, click.Group):
            yield from _sections(command, inner)


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    level = "##" if context.parent and context.parent.parent is None else "###"
    yield f"\n{level} {context.command_path}\n\n"
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"```none\n{context.command_path} {pieces}\n```\n\n"
    yield f"{_text(cleandoc(command.help or ''))}\n\n"
    records = [it.get_help_record(context) for it in command.get_params(context)]
    rows = [it for it in records if it is not None and it[1] and "--help" not in it[0]]
    if rows:
        yield "| option | meaning |\n|---|---|\n"
        yield from (f"| `{_cell(names)}` | {_cell(_text(says))} |\n" for names, says in rows)


def _text(text: str) -> str:
    """Help as Markdown: Click's marks are left out, and nothing is taken for markup."""
    for mark in "\b\f":
        text = text.replace(mark, "")
    for special in ("\\", "*", "_", "<", "[", "`"):
        text = text.replace(special, f"\\{special}")
    return text


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
