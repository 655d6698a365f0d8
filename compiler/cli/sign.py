"""The commands ``dovetail keygen`` and ``dovetail sign``."""

from pathlib import Path

import click

from .output import clear_errors, human

__all__ = ["keygen", "sign"]


@click.command()
@click.argument("name", type=click.Path(path_type=Path))
@clear_errors
def keygen(name: Path) -> None:
    """Make a pair of keys: NAME.key, which signs and is for you alone, and NAME.pub."""
    from dovetail.runtime.trust.signature import make_keys

    private, public = make_keys(name)
    human.print(f"{private}: keep it to yourself; {public}: give it to whoever runs your modules")


@click.command()
@click.argument("module", type=click.Path(path_type=Path))
@click.option("--key", type=click.Path(path_type=Path), required=True, help="Of dovetail keygen.")
@clear_errors
def sign(module: Path, key: Path) -> None:
    """Sign MODULE, in place; `dovetail run --require-signature NAME.pub` then takes it."""
    from dovetail.runtime.trust.signature import sign_file

    sign_file(module, key)
    human.print(f"{module}: signed with {key}")
