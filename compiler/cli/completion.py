"""The command ``dovetail completion``."""

import click

from .output import json_option, print_json

__all__ = ["completion"]

NAME = "dovetail"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print a script that makes SHELL complete the words of this command.

    For bash: dovetail completion bash > ~/.local/share/bash-completion/completions/dovetail
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell
    command = context.find_root().command
    script = found(command, {}, NAME, f"_{NAME.upper()}_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
