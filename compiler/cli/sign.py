"""The commands ``dovetail keygen`` and ``dovetail sign``."""

from pathlib import Path

import click

from .output import clear_errors, human, json_option, print_json
from .paths import PATH

__all__ = ["keygen", "sign"]


@click.command()
@click.argument("name", type=PATH)
@json_option
@clear_errors
def keygen(name: Path, as_json: bool) -> None:
    """Make a pair of keys: NAME.key, which signs and must stay secret, and NAME.pub."""
    from dovetail.runtime.trust.signature import make_keys

    private, public = make_keys(name)
    if as_json:
        print_json({"private": str(private), "public": str(public)})
        return
    human.print(f"{private}: keep it to yourself; {public}: give it to whoever runs your modules")


@click.command()
@click.argument("module", type=PATH)
@click.option("--key", type=PATH, required=True, help="NAME.key, from dovetail keygen.")
@json_option
@clear_errors
def sign(module: Path, key: Path, as_json: bool) -> None:
    """Sign MODULE in place, for `dovetail run --require-signature NAME.pub`."""
    from dovetail.runtime.trust.signature import sign_file
    from dovetail.runtime.trust.signer import signer_of

    sign_file(module, key)
    if as_json:
        print_json({"module": str(module), "signed_by": signer_of(module)})
        return
    human.print(f"{module}: signed with {key}")
